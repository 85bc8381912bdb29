import type { NativeProcess } from './internal/binding';
import { type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { outputOf } from './internal/output';

export function size(options: { cols?: number; rows?: number }): { cols: number; rows: number } {
  const cells = (name: 'cols' | 'rows', standard: number) => {
    const value = check.count(name, options[name] ?? standard);
    if (value < 1 || value > 65_535) throw check.invalid(name, 'between 1 and 65535', value);
    return value;
  };
  return { cols: cells('cols', 80), rows: cells('rows', 24) };
}

/**
 * A terminal in a sandbox, as a screen and a keyboard see it: bytes.
 *
 * @example
 * ```ts
 * const terminal = await sandbox.terminal({ cols: 120, rows: 40 });
 * await terminal.write('ls\n');
 * for await (const bytes of terminal) process.stdout.write(bytes);
 * ```
 */
export class Terminal implements AsyncIterable<Uint8Array>, AsyncDisposable {
  /** Good from any program that can reach the sandbox: `sandbox.terminal({ execId })`. */
  readonly execId: string;
  readonly #native: NativeProcess;

  /** @internal */
  constructor(native: NativeProcess) {
    this.#native = native;
    this.execId = native.execId;
  }

  /** What is still kept of its output, and then all that comes until it ends. Leaving early does not end the terminal. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array> {
    return this.#bytes(callSite(this[Symbol.asyncIterator]));
  }

  async *#bytes(site: CallSite): AsyncGenerator<Uint8Array, undefined> {
    for await (const { data } of outputOf(this.#native, site)) yield data;
  }

  /**
   * Types. Keys that are signals (`\x03` for Ctrl-C) are signals.
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
   * The programs on it are told.
   *
   * @example
   * ```ts
   * const terminal = await sandbox.terminal();
   * await terminal.resize({ cols: process.stdout.columns, rows: process.stdout.rows });
   * ```
   */
  async resize(cells: { cols: number; rows: number }): Promise<void> {
    return call(callSite(this.resize), async () => this.#native.resize(size(check.object('size', cells))));
  }

  /**
   * Hangs up and ends all that runs on it; with a `signal`, sends just that.
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
   * Waits for the end of its shell or command.
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
   * Hangs up, and ends all that runs on it. Twice is fine.
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

  /** As {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
