/** Connects the terminal of this program to one in a sandbox: keys one way, output the other, and the size. */
import type { Sandbox } from '../../sandbox';
import type { Terminal } from '../../terminal';
import { DetachKeys } from './detach-keys';
import type { LocalTerminal } from './local-terminal';

/** How it ended: the program on it exited, or keeps running without us. */
export type Leaving = { how: 'exited'; exitCode: number } | { how: 'detached' };

/** The local terminal was closed. */
export class HungUp extends Error {}

/** How much may be typed ahead of a program that does not read, before we stop reading too. */
const AHEAD_BYTES = 1024 * 1024;

export interface Attachment {
  readonly sandbox: Sandbox;
  readonly terminal: Terminal;
  /** Its output. */
  readonly output: AsyncIterable<Uint8Array>;
  readonly detachKeys: Buffer;
  readonly signal: AbortSignal;
}

/** Connects both terminals until either ends. Rejects with `signal.reason`. */
export async function attach(local: LocalTerminal, attachment: Attachment): Promise<Leaving> {
  const { signal, output, terminal } = attachment;
  const over = new AbortController();
  const isOver = () => signal.aborted || over.signal.aborted;
  const left = new Promise<Leaving>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    readKeys(new Keyboard(attachment), over.signal, {
      detachKeys: attachment.detachKeys,
      detach: () => resolve({ how: 'detached' }),
      hangUp: () => reject(new HungUp()),
    });
  });
  const exited = (async (): Promise<Leaving> => {
    for await (const bytes of output) {
      if (isOver()) break;
      await shown(local.write(bytes));
    }
    await shown(local.flush());
    return { how: 'exited', exitCode: (await terminal.wait()).exitCode };
  })();
  followSize(local, terminal, over.signal);
  try {
    signal.throwIfAborted();
    return await Promise.race([left, exited]);
  } finally {
    over.abort();
    // No one else handles the one that lost the race.
    for (const loser of [left, exited]) loser.catch(() => {});
  }
}

async function shown(writing: Promise<void>): Promise<void> {
  try {
    await writing;
  } catch {
    throw new HungUp();
  }
}

function readKeys(
  keyboard: Keyboard,
  over: AbortSignal,
  to: { detachKeys: Buffer; detach: () => void; hangUp: () => void },
): void {
  const keys = new DetachKeys(to.detachKeys, { pass: (bytes) => keyboard.type(bytes), detach: to.detach });
  const { stdin } = process;
  const onData = (typed: Buffer) => keys.take(typed);
  stdin.on('data', onData).on('end', to.hangUp).on('error', to.hangUp);
  over.addEventListener('abort', () => {
    stdin.removeListener('data', onData).removeListener('end', to.hangUp);
    stdin.pause();
  });
}

/** Sends keys in order. */
class Keyboard {
  readonly #sandbox: Sandbox;
  #terminal: Terminal;
  #typing: Promise<void> = Promise.resolve();
  #ahead = 0;

  constructor({ sandbox, terminal }: Attachment) {
    this.#sandbox = sandbox;
    this.#terminal = terminal;
  }

  type(bytes: Buffer): void {
    this.#ahead += bytes.length;
    if (this.#ahead > AHEAD_BYTES) process.stdin.pause();
    this.#typing = this.#typing
      .then(() => this.#send(bytes))
      // A terminal that takes no keys has ended or is lost; its output tells which.
      .catch(() => {})
      .then(() => {
        this.#ahead -= bytes.length;
        if (this.#ahead <= AHEAD_BYTES) process.stdin.resume();
      });
  }

  async #send(bytes: Buffer): Promise<void> {
    try {
      await this.#terminal.write(bytes);
    } catch {
      // The input of a process ends with its link; over a new link, it starts again.
      this.#terminal = await this.#sandbox.terminal({ execId: this.#terminal.execId });
      await this.#terminal.write(bytes);
    }
  }
}

/** Sends one size at a time, and of several only the last. */
function followSize(local: LocalTerminal, terminal: Terminal, over: AbortSignal): void {
  let isSending = false;
  let isSent = true;
  const send = async () => {
    isSending = true;
    for (isSent = false; !isSent && !over.aborted; ) {
      isSent = true;
      await terminal.resize(local.size).catch(() => {});
    }
    isSending = false;
  };
  const onResize = () => {
    isSent = false;
    if (!isSending) send();
  };
  process.stdout.on('resize', onResize);
  over.addEventListener('abort', () => process.stdout.removeListener('resize', onResize));
}
