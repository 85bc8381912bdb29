/**
 * The terminal of this program, while it is connected to a sandbox.
 *
 * Invariant: however the program ends, except by SIGKILL, the terminal is restored: its line settings, and the modes that
 * programs of the sandbox set.
 */
import { spawnSync } from 'node:child_process';
import { constants, openSync, writeSync, write as writeTo } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { TerminalModes } from './modes';

/** How long a full terminal is retried at once: one that is being read has room by then. */
const BUSY_RETRY_MS = 2;

/** Between two later retries. */
const RETRY_MS = 5;

/** How much may wait for a slow terminal: little, because it delays the response to a key. */
const WAITING_BYTES = 64 * 1024;

/** How long to wait for a slow terminal at the end. */
const DRAIN_MS = 200;

/** For a terminal that does not report its size, such as a serial line. */
const DEFAULT_SIZE = { cols: 80, rows: 24 };

export class LocalTerminal {
  readonly #modes = new TerminalModes();
  readonly #output = openOutput();
  readonly #restore = () => this.release();
  readonly #onContinue = () => this.#raw();
  #isTaken = false;
  #isDraining = false;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #showing: Promise<void> | undefined;
  #fault: Error | undefined;
  #last: number | undefined;
  #fullSince: number | undefined;

  static get isAvailable(): boolean {
    return process.stdin.isTTY === true && process.stdout.isTTY === true;
  }

  get size(): { cols: number; rows: number } {
    const { columns, rows } = process.stdout;
    return { cols: columns || DEFAULT_SIZE.cols, rows: rows || DEFAULT_SIZE.rows };
  }

  /** Sets raw mode: from now on every key goes to the sandbox. */
  take(): void {
    this.#isTaken = true;
    process.on('exit', this.#restore);
    // Before a stack is printed, so that it is readable.
    process.on('uncaughtExceptionMonitor', this.#restore);
    // Another program may have used the terminal while we were stopped.
    process.on('SIGCONT', this.#onContinue);
    this.#raw();
  }

  #raw(): void {
    process.stdin.setRawMode(false);
    process.stdin.setRawMode(true);
    // Node's raw mode still turns line feeds into new lines, which the sandbox's terminal does already. At the end Node
    // restores all of it.
    if (process.platform !== 'win32') spawnSync('stty', ['raw', '-echo'], { stdio: ['inherit', 'ignore', 'ignore'] });
  }

  /** Stops the output, and waits a moment for pending writes, so that nothing follows the release. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await Promise.race([this.#showing, sleep(DRAIN_MS, undefined, { ref: false })]);
  }

  /** Restores the terminal. Idempotent. */
  release(): void {
    if (!this.#isTaken) return;
    this.#isTaken = false;
    this.#isDraining = true;
    process.removeListener('exit', this.#restore);
    process.removeListener('uncaughtExceptionMonitor', this.#restore);
    process.removeListener('SIGCONT', this.#onContinue);
    // A message follows: on a line of its own, if a program was interrupted in the middle of one.
    const isMidLine = !this.#modes.isAlternate && this.#last !== undefined && this.#last !== 0x0a;
    const undo = `${this.#modes.restore()}${isMidLine ? '\r\n' : ''}`;
    try {
      process.stdin.setRawMode(false);
      putNow(this.#output, undo);
    } catch {
      // The terminal is gone or stuck.
    }
  }

  /**
   * Resolves when there is room for more, and rejects when the terminal is gone. Output that arrives while the terminal is
   * busy is written at once.
   */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#fault) throw this.#fault;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#showing ??= this.#show();
    if (this.#waitingBytes >= WAITING_BYTES) await this.flush();
  }

  /** Waits until everything is written. */
  async flush(): Promise<void> {
    await this.#showing;
    if (this.#fault) throw this.#fault;
  }

  async #show(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const bytes = Buffer.concat(this.#waiting.splice(0));
        this.#waitingBytes = 0;
        this.#modes.take(bytes);
        this.#last = bytes.at(-1);
        for (let shown = 0; !this.#isDraining && shown < bytes.length; )
          shown += await this.#put(bytes.subarray(shown));
      }
    } catch (error) {
      this.#fault = error as Error;
    }
    this.#showing = undefined;
  }

  /**
   * Returns how much was written. Not with `process.stdout`, which blocks the whole program while a terminal is slow, and
   * with it the key that would stop the output.
   */
  #put(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      if (process.platform === 'win32') {
        process.stdout.write(bytes, () => setImmediate(resolve, bytes.length));
        return;
      }
      writeTo(this.#output, bytes, (error, count) => {
        const isFull = error?.code === 'EAGAIN';
        if (isFull) this.#fullSince ??= performance.now();
        else this.#fullSince = undefined;
        if (!error) resolve(count);
        else if (!isFull) reject(error);
        else if (performance.now() - (this.#fullSince ?? 0) < BUSY_RETRY_MS) setImmediate(resolve, 0);
        else setTimeout(resolve, RETRY_MS, 0);
      });
    });
  }
}

/** Synchronous: also works while the program exits. */
function putNow(output: number, text: string): void {
  const late = performance.now() + DRAIN_MS;
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let bytes = Buffer.from(text); bytes.length > 0; ) {
    try {
      bytes = bytes.subarray(writeSync(output, bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() > late) throw error;
      Atomics.wait(never, 0, 0, RETRY_MS);
    }
  }
}

/**
 * Opens standard output again, non-blocking for us alone: others share the terminal. A thread that blocks on a stuck terminal
 * would delay our exit, and the line settings.
 */
function openOutput(): number {
  try {
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    // Not Linux, or the terminal belongs to another user.
    return 1;
  }
}
