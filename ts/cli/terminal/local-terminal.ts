/**
 * The terminal that this program was started on, while a sandbox has it.
 *
 * Invariant: however the program ends, short of being killed outright, the terminal is as it was: its line settings, and
 * the modes in which programs of the sandbox left it.
 */
import { spawnSync } from 'node:child_process';
import { constants, openSync, writeSync, write as writeTo } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { TerminalModes } from './modes';

/** How long a full terminal is asked again and again: one that is being read has room by then. */
const EAGER_MS = 2;

/** Between two questions to one that is not. */
const PATIENT_MS = 5;

/** What may wait for a slow terminal: little, for it comes before the answer to a key. */
const WAITING_BYTES = 64 * 1024;

/** For a terminal that is merely slow. One that takes nothing any more is not waited for. */
const SETTLED_MS = 200;

/** Where a terminal does not say how large it is, as on a serial line. */
const USUAL = { cols: 80, rows: 24 };

export class LocalTerminal {
  readonly #modes = new TerminalModes();
  readonly #output = openOutput();
  readonly #giveBack = () => this.release();
  readonly #seizeAgain = () => this.#raw();
  #isSeized = false;
  #isSettled = false;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #showing: Promise<void> | undefined;
  #fault: Error | undefined;
  #last: number | undefined;
  #fullSince: number | undefined;

  static get isThere(): boolean {
    return process.stdin.isTTY === true && process.stdout.isTTY === true;
  }

  get size(): { cols: number; rows: number } {
    const { columns, rows } = process.stdout;
    return { cols: columns || USUAL.cols, rows: rows || USUAL.rows };
  }

  /** From now on every key and every byte is the sandbox's. */
  seize(): void {
    this.#isSeized = true;
    process.on('exit', this.#giveBack);
    // Before the trace of an error is printed, so that it can be read.
    process.on('uncaughtExceptionMonitor', this.#giveBack);
    // Whoever stopped us has used the terminal since.
    process.on('SIGCONT', this.#seizeAgain);
    this.#raw();
  }

  #raw(): void {
    process.stdin.setRawMode(false);
    process.stdin.setRawMode(true);
    // Node leaves the terminal to turn line feeds into new lines, which is for the sandbox's terminal to do. What it takes
    // back at the end is all of it.
    if (process.platform !== 'win32') spawnSync('stty', ['raw', '-echo'], { stdio: ['inherit', 'ignore', 'ignore'] });
  }

  /** Shows no more, and waits a moment for what the terminal is just taking, so that nothing comes after the release. */
  async settle(): Promise<void> {
    this.#isSettled = true;
    await Promise.race([this.#showing, sleep(SETTLED_MS, undefined, { ref: false })]);
  }

  /** Twice is fine. */
  release(): void {
    if (!this.#isSeized) return;
    this.#isSeized = false;
    this.#isSettled = true;
    process.removeListener('exit', this.#giveBack);
    process.removeListener('uncaughtExceptionMonitor', this.#giveBack);
    process.removeListener('SIGCONT', this.#seizeAgain);
    // A program that was cut off in the middle of a line is followed by whatever is said about it.
    const isAmid = !this.#modes.isAlternate && this.#last !== undefined && this.#last !== 0x0a;
    const undo = `${this.#modes.restore()}${isAmid ? '\r\n' : ''}`;
    try {
      process.stdin.setRawMode(false);
      putNow(this.#output, undo);
    } catch {
      // There is no terminal any more, or it takes nothing.
    }
  }

  /**
   * Resolves when there is room for more, and rejects when there is no terminal any more. What comes while the terminal is
   * busy goes to it as one.
   */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.#fault) throw this.#fault;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#showing ??= this.#show();
    if (this.#waitingBytes >= WAITING_BYTES) await this.flush();
  }

  /** Until all is shown. */
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
        for (let shown = 0; !this.#isSettled && shown < bytes.length; ) shown += await this.#put(bytes.subarray(shown));
      }
    } catch (error) {
      this.#fault = error as Error;
    }
    this.#showing = undefined;
  }

  /**
   * Gives how much of it was taken. Not by `process.stdout`, which holds up the whole program for as long as a terminal is
   * slow, and with it the key that would make it stop.
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
        else if (performance.now() - (this.#fullSince ?? 0) < EAGER_MS) setImmediate(resolve, 0);
        else setTimeout(resolve, PATIENT_MS, 0);
      });
    });
  }
}

/** Even while the program ends, when nothing else can be waited for. */
function putNow(output: number, text: string): void {
  const late = performance.now() + SETTLED_MS;
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (let bytes = Buffer.from(text); bytes.length > 0; ) {
    try {
      bytes = bytes.subarray(writeSync(output, bytes));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() > late) throw error;
      Atomics.wait(never, 0, 0, PATIENT_MS);
    }
  }
}

/**
 * Standard output, opened once more: writing to it never waits, which is nobody else's business who shares the terminal.
 * A thread that waits in the kernel for a terminal that takes nothing would hold up our end, and the line settings.
 */
function openOutput(): number {
  try {
    return openSync('/proc/self/fd/1', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    // Not Linux, or the terminal of another user.
    return 1;
  }
}
