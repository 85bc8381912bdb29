/**
 * Sends the output of a running command as progress notifications, to clients that requested them.
 *
 * Invariant: one notification is sent at a time, and what waits for the next is bounded. A slow client sees less of the
 * output. It neither slows the command nor makes this program use more memory. The result of the call has the output, too.
 */
import type { ToolOutput } from '../tools/toolset';

/** The minimum time between two notifications. */
const INTERVAL_MS = 100;
/** Without output, a notification this often shows that the call is alive: many clients give up after a silent minute. */
const SILENCE_MS = 10_000;
/** The maximum length of one notification: the newest characters. */
const MAX_CHARACTERS = 16 * 1024;

/**
 * The maximum number of characters of one call. A transport accepts everything, whether or not the client reads it: the rest
 * is only counted.
 */
const MAX_SENT = 4 * 1024 * 1024;

/** The parameters of `notifications/progress`, without the token. */
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
  #sent = 0;
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
    if (this.#sent >= MAX_SENT) {
      this.#leftOut += text.length;
      return;
    }
    const all = this.#waiting + text;
    this.#waiting = tail(all, MAX_CHARACTERS);
    this.#leftOut += all.length - this.#waiting.length;
    if (this.#sending === undefined) this.#wait(INTERVAL_MS - (performance.now() - this.#last));
  };

  /** Sends the rest, and nothing after that. */
  async end(): Promise<void> {
    await this.#sending;
    clearTimeout(this.#timer);
    if (this.#waiting !== '') await this.#notify();
    this.#ended = true;
    clearTimeout(this.#timer);
  }

  #wait(ms: number): void {
    clearTimeout(this.#timer);
    if (!this.#ended) this.#timer = setTimeout(() => void this.#notify(), Math.max(ms, 0)).unref();
  }

  #message(seconds: number): string {
    const omission = this.#leftOut > 0 ? `[… ${this.#leftOut} characters left out …]\n` : '';
    if (this.#waiting !== '') return omission + this.#waiting;
    return `${omission}running for ${Math.round(seconds)} s`;
  }

  async #notify(): Promise<void> {
    const seconds = (performance.now() - this.#begun) / 1000;
    const message = this.#message(seconds);
    this.#sent += message.length;
    this.#waiting = '';
    this.#leftOut = 0;
    // A client that is gone is noticed elsewhere.
    this.#sending = this.#send({ progress: seconds, message }).catch(() => {});
    await this.#sending;
    this.#sending = undefined;
    this.#last = performance.now();
    this.#wait(this.#waiting === '' ? SILENCE_MS : INTERVAL_MS);
  }
}

/** The last characters, without a partial one at the start. */
function tail(text: string, length: number): string {
  if (text.length <= length) return text;
  const cut = text.slice(-length);
  return cut.isWellFormed() ? cut : cut.slice(1);
}
