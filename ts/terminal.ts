import type { Command } from './command';
import type { NativeProcess } from './internal/binding';
import { type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { outputOf } from './internal/output';

/** How to open a terminal. */
export interface TerminalOptions {
  /** By default, the user's shell: `$SHELL`, the user's entry in `/etc/passwd`, bash, sh. */
  command?: Command;
  /**
   * Characters in a line.
   *
   * @default 80
   */
  cols?: number;
  /**
   * Lines.
   *
   * @default 24
   */
  rows?: number;
  /** Working directory, absolute or relative to the workdir. By default, the workdir. */
  cwd?: string;
  /** Added to the sandbox's environment. `TERM` is `xterm-256color` by default. */
  env?: Record<string, string>;
  /** `uid[:gid]` or a name in the image. By default, the sandbox's user. */
  user?: string;
  /**
   * Keeps it open when this program ends.
   *
   * @default false
   */
  detached?: boolean;
  /** Reattaches to a terminal that was opened before, also by another program. All other options are ignored then. */
  execId?: string;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** How many characters a terminal shows. */
export interface TerminalSize {
  /** In a line. */
  cols: number;
  /** Lines. */
  rows: number;
}

/** @internal */
export function size(options: Partial<TerminalSize>): TerminalSize {
  const cells = (name: 'cols' | 'rows', standard: number) => {
    const value = check.count(name, options[name] ?? standard);
    if (value < 1 || value > 65_535) throw check.invalid(name, 'between 1 and 65535', value);
    return value;
  };
  return { cols: cells('cols', 80), rows: cells('rows', 24) };
}

/**
 * A terminal in a sandbox: bytes to its keyboard, bytes from its screen.
 *
 * @example
 * ```ts
 * const terminal = await sandbox.terminal({ cols: 120, rows: 40 });
 * await terminal.write('ls\n');
 * for await (const bytes of terminal) process.stdout.write(bytes);
 * ```
 */
export class Terminal implements AsyncIterable<Uint8Array>, AsyncDisposable {
  /** Its id, valid in any program that can reach the sandbox: `sandbox.terminal({ execId })`. */
  readonly execId: string;
  readonly #native: NativeProcess;

  /** @internal */
  constructor(native: NativeProcess) {
    this.#native = native;
    this.execId = native.execId;
  }

  /** Yields the retained output, then all output until it ends. Leaving early does not end the terminal. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array> {
    return this.#bytes(callSite(this[Symbol.asyncIterator]));
  }

  async *#bytes(site: CallSite): AsyncGenerator<Uint8Array, undefined> {
    for await (const { data } of outputOf(this.#native, site)) yield data;
  }

  /**
   * Sends keys. Those that are signals (`\x03` for Ctrl-C) are delivered as signals.
   *
   * @example
   * ```ts
   * const terminal = await sandbox.terminal();
   * await terminal.write('sleep 100\n');
   * await terminal.write('\x03');
   * ```
   */
  async write(data: string | Uint8Array): Promise<void> {
    return call(callSite(this.write), async () => this.#native.write(check.bytes('data', data)));
  }

  /**
   * Changes its size; the programs on it are notified.
   *
   * @example
   * ```ts
   * const terminal = await sandbox.terminal();
   * await terminal.resize({ cols: process.stdout.columns, rows: process.stdout.rows });
   * ```
   */
  async resize(cells: TerminalSize): Promise<void> {
    return call(callSite(this.resize), async () => this.#native.resize(size(check.object('size', cells))));
  }

  /**
   * Hangs up and ends everything that runs on it; with a `signal`, only sends that.
   *
   * @example
   * ```ts
   * const terminal = await sandbox.terminal({ command: 'top' });
   * await terminal.kill('SIGTERM');
   * ```
   */
  async kill(signal?: NodeJS.Signals): Promise<void> {
    return call(callSite(this.kill), async () => this.#native.kill(check.optionalText('signal', signal)));
  }

  /**
   * Waits until its shell or command ends.
   *
   * @example
   * ```ts
   * const terminal = await sandbox.terminal({ command: ['python3'] });
   * await terminal.write('exit(3)\n');
   * const { exitCode } = await terminal.wait(); // 3
   * ```
   */
  async wait(): Promise<{ exitCode: number; signal: string | null }> {
    const { exitCode, signal } = await call(callSite(this.wait), () => this.#native.wait());
    return { exitCode, signal: signal ?? null };
  }

  /**
   * Hangs up and ends everything that runs on it. Idempotent.
   *
   * @example
   * ```ts
   * const terminal = await sandbox.terminal();
   * await terminal.close();
   * ```
   */
  async close(): Promise<void> {
    return call(callSite(this.close), () => this.#native.kill());
  }

  /** Same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
