import type { NativeChunk, NativeProcess } from './internal/binding';
import { abortable, type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { toExecResult } from './internal/command';
import { outputOf } from './internal/output';
import type { ExecResult, OutputChunk } from './options';

const DEFAULT_MAX_CHUNKS = 1_000;

const PORT_TIMEOUT_MS = 30_000;

/** The text is only made when it is asked for: a gigabyte of bytes need not become a gigabyte of string. */
function toChunk({ seq, isStderr, data }: NativeChunk): OutputChunk {
  return {
    seq,
    stream: isStderr ? 'stderr' : 'stdout',
    data,
    get text() {
      return data.toString('utf8');
    },
  };
}

/**
 * A process that goes on by itself.
 *
 * @example
 * ```ts
 * const build = await sandbox.spawn('make -j2');
 * for await (const chunk of build) process.stdout.write(chunk.text);
 * const { exitCode } = await build.wait();
 * ```
 */
export class Process implements AsyncIterable<OutputChunk> {
  /** Its number, good from any program that can reach the sandbox: `sandbox.process(execId)`. */
  readonly execId: string;
  /** Its pid in the sandbox. */
  readonly pid: number;
  /** The file in the sandbox with its whole output, where `logFile` was asked for. */
  readonly logFile: string | null;
  readonly #native: NativeProcess;
  readonly #onEnd: (() => void) | undefined;

  /** @internal `onEnd` is called, perhaps several times, when this handle has seen the process's end. */
  constructor(native: NativeProcess, onEnd?: () => void, hasLog = false) {
    this.#native = native;
    this.#onEnd = onEnd;
    this.logFile = hasLog ? native.logPath : null;
    this.execId = native.execId;
    this.pid = native.pid;
  }

  /**
   * Everything it printed that is still kept, and then everything it prints until it ends, losing nothing: a slow reader
   * slows the process. Leaving early stops reading, not the process.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<OutputChunk> {
    return this.#chunks(callSite(this[Symbol.asyncIterator]));
  }

  async *#chunks(site: CallSite): AsyncGenerator<OutputChunk, undefined> {
    for await (const chunk of outputOf(this.#native, site)) yield toChunk(chunk);
    this.#onEnd?.();
  }

  /**
   * What is kept of its output after chunk `sinceSeq`, waiting up to `waitMs` for a first chunk.
   *
   * @example
   * ```ts
   * const build = await sandbox.spawn('make');
   * let sinceSeq = 0;
   * for (let done = false; !done; ) {
   *   const news = await build.read({ sinceSeq, waitMs: 1000 });
   *   for (const chunk of news.chunks) console.log(chunk.seq, chunk.text);
   *   sinceSeq = news.chunks.at(-1)?.seq ?? sinceSeq;
   *   done = news.done && news.chunks.length === 0;
   * }
   * ```
   */
  async read(
    options: { sinceSeq?: number; maxChunks?: number; waitMs?: number } = {},
  ): Promise<{ chunks: OutputChunk[]; done: boolean; lostBytes: number }> {
    const recent = await call(callSite(this.read), async () =>
      this.#native.read(
        check.count('sinceSeq', options.sinceSeq ?? 0),
        Math.min(check.count('maxChunks', options.maxChunks ?? DEFAULT_MAX_CHUNKS), 2 ** 32 - 1),
        check.millis('waitMs', options.waitMs ?? 0),
      ),
    );
    return { chunks: recent.chunks.map(toChunk), done: recent.done, lostBytes: recent.lostBytes };
  }

  /**
   * Writes to its input, as fast as it reads.
   *
   * @example
   * ```ts
   * const shell = await sandbox.spawn('python -i');
   * await shell.write('print(6 * 7)\n');
   * ```
   */
  async write(data: string | Uint8Array): Promise<void> {
    return call(callSite(this.write), async () => this.#native.write(check.bytes('data', data)));
  }

  /**
   * Ends its input.
   *
   * @example
   * ```ts
   * const sort = await sandbox.spawn('sort');
   * await sort.write('b\na\n');
   * await sort.end();
   * const { stdout } = await sort.wait(); // 'a\nb\n'
   * ```
   */
  async end(): Promise<void> {
    return call(callSite(this.end), () => this.#native.end());
  }

  /**
   * Ends it with all that it started: TERM, the grace period, KILL; resolves when nothing of it is left. With a `signal`,
   * sends just that to the whole tree.
   *
   * @example
   * ```ts
   * const server = await sandbox.spawn('npm start');
   * await server.kill('SIGHUP'); // just the signal
   * await server.kill(); // its end
   * ```
   */
  async kill(signal?: NodeJS.Signals): Promise<void> {
    return call(callSite(this.kill), async () => this.#native.kill(check.optionalText('signal', signal)));
  }

  /**
   * Waits until somebody listens at a port of the sandbox, such as a server that was just started. Rejects with
   * `TIMED_OUT` after `timeoutMs` (30 s), and with what it printed as soon as this process ends.
   *
   * @example
   * ```ts
   * const server = await sandbox.spawn('python -m http.server 8000');
   * await server.waitForPort(8000);
   * const { url } = await sandbox.forward(8000);
   * ```
   */
  async waitForPort(port: number, options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<void> {
    return abortable(callSite(this.waitForPort), options.signal, async (cancel) =>
      this.#native.waitForPort(
        check.port('port', port),
        check.timeout('timeoutMs', options.timeoutMs ?? PORT_TIMEOUT_MS),
        cancel,
      ),
    );
  }

  /**
   * Waits for its end. Giving up the wait leaves the process running: it rejects with `TIMED_OUT`.
   *
   * @example
   * ```ts
   * const build = await sandbox.spawn('make');
   * const { ok, stderr } = await build.wait({ timeoutMs: 600_000 });
   * ```
   */
  async wait(options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<ExecResult> {
    const result = await abortable(callSite(this.wait), options.signal, async (cancel) =>
      this.#native.wait(check.timeout('timeoutMs', options.timeoutMs), cancel),
    );
    this.#onEnd?.();
    return toExecResult(result);
  }
}
