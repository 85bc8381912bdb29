/**
 * A running command's output as progress notifications, for clients that asked for them.
 *
 * Invariant: one notification is under way at a time, and what waits for the next is bounded. A client that reads slowly
 * sees less of a chatty command, and neither slows it nor grows this program. The call's result has the output, too.
 */
import type { ToolOutput } from '../tools/toolset';

/** At most so often, so that a chatty command does not drown its client. */
const INTERVAL_MS = 100;
/** Without output a client still hears this often that the call is alive: many give up after a silent minute. */
const SILENCE_MS = 10_000;
/** The most characters of one notification: the newest ones. */
const MAX_CHARACTERS = 16 * 1024;

/**
 * The most characters of one call. A transport takes whatever it is given, whether or not the client reads it: what is over
 * this is only counted.
 */
const MAX_TOLD = 4 * 1024 * 1024;

/** What goes into `notifications/progress` beside the token. */
export interface Progress {
  /** Seconds since the call began. */
  progress: number;
  message: string;
}

export class OutputProgress {
  readonly #send: (progress: Progress) => Promise<void>;
  readonly #begun = performance.now();
  #waiting = '';
  #leftOut = 0;
  #told = 0;
  #last = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #ended = false;

  constructor(send: (progress: Progress) => Promise<void>) {
    this.#send = send;
    this.#wait(SILENCE_MS);
  }

  /** Takes a piece of output; never waits. */
  readonly onOutput = ({ text }: ToolOutput): void => {
    if (this.#told >= MAX_TOLD) {
      this.#leftOut += text.length;
      return;
    }
    const all = this.#waiting + text;
    this.#waiting = tail(all, MAX_CHARACTERS);
    this.#leftOut += all.length - this.#waiting.length;
    if (this.#sending === undefined) this.#wait(INTERVAL_MS - (performance.now() - this.#last));
  };

  /** Tells what is left, after which nothing more is sent. */
  async end(): Promise<void> {
    await this.#sending;
    clearTimeout(this.#timer);
    if (this.#waiting !== '') await this.#tell();
    this.#ended = true;
    clearTimeout(this.#timer);
  }

  #wait(ms: number): void {
    clearTimeout(this.#timer);
    if (!this.#ended) this.#timer = setTimeout(() => void this.#tell(), Math.max(ms, 0)).unref();
  }

  #message(seconds: number): string {
    const omission = this.#leftOut > 0 ? `[… ${this.#leftOut} characters left out …]\n` : '';
    if (this.#waiting !== '') return omission + this.#waiting;
    return `${omission}running for ${Math.round(seconds)} s`;
  }

  async #tell(): Promise<void> {
    const seconds = (performance.now() - this.#begun) / 1000;
    const message = this.#message(seconds);
    this.#told += message.length;
    this.#waiting = '';
    this.#leftOut = 0;
    // Who is gone needs no progress; that they are gone is found out elsewhere.
    this.#sending = this.#send({ progress: seconds, message }).catch(() => {});
    await this.#sending;
    this.#sending = undefined;
    this.#last = performance.now();
    this.#wait(this.#waiting === '' ? SILENCE_MS : INTERVAL_MS);
  }
}

/** The last characters, not beginning inside of one. */
function tail(text: string, length: number): string {
  if (text.length <= length) return text;
  const cut = text.slice(-length);
  return cut.isWellFormed() ? cut : cut.slice(1);
}
