import type { ExecResult } from './command';
import type { NativeChunk, NativeProcess } from './internal/binding';
import { abortable, type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { toExecResult } from './internal/command';
import { outputOf } from './internal/output';

const DEFAULT_MAX_CHUNKS = 1_000;

const PORT_TIMEOUT_MS = 30_000;

/** A piece of a process's output. */
export interface OutputChunk {
  /** Starts at 1 and rises by one per chunk over both streams. */
  seq: number;
  /** Which of the two it was printed to. */
  stream: 'stdout' | 'stderr';
  /** The exact bytes. */
  data: Uint8Array;
  /** The same as text; never cut inside a character. */
  text: string;
}

/** A process that was started in a sandbox, running or ended. */
export interface ProcessInfo {
  /** Its id, for `sandbox.process()`. */
  execId: string;
  /** Its pid in the sandbox. */
  pid: number;
  /** As it was given. */
  command: string;
  /** By the host's clock. */
  startedAt: Date;
  /** `null` while it runs. */
  exitCode: number | null;
}

/** Which output to read. */
export interface ReadOutputOptions {
  /** Only chunks after this one. By default, from the first retained one. */
  sinceSeq?: number;
  /**
   * The most chunks to return.
   *
   * @default 1000
   */
  maxChunks?: number;
  /**
   * How long to wait for a first chunk.
   *
   * @default 0
   */
  waitMs?: number;
}

/** How long to wait for a process. */
export interface WaitOptions {
  /** After this long the call rejects with `TIMED_OUT`; the process keeps running. No limit by default. */
  timeoutMs?: number;
  /** Aborts the call; rejects with `signal.reason`. The process keeps running. */
  signal?: AbortSignal;
}

/** How long to wait for a port. */
export interface WaitForPortOptions {
  /**
   * After this long the call rejects with `TIMED_OUT`.
   *
   * @default 30_000
   */
  timeoutMs?: number;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** The text is made on demand: a gigabyte of bytes need not become a gigabyte of string. */
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
 * A process in a sandbox, running or ended.
 *
 * @example
 * ```ts
 * const build = await sandbox.spawn('make -j2');
 * for await (const chunk of build) process.stdout.write(chunk.text);
 * const { exitCode } = await build.wait();
 * ```
 */
export class Process implements AsyncIterable<OutputChunk> {
  /** Its id, valid in any program that can reach the sandbox: `sandbox.process(execId)`. */
  readonly execId: string;
  /** Its pid in the sandbox. */
  readonly pid: number;
  /** The file in the sandbox with its whole output; `null` without the option `logFile`. */
  readonly logFile: string | null;
  readonly #native: NativeProcess;
  readonly #onEnd: (() => void) | undefined;

  /** @internal `onEnd` is called, perhaps several times, once this object has seen the process end. */
  constructor(native: NativeProcess, onEnd?: () => void, hasLog = false) {
    this.#native = native;
    this.#onEnd = onEnd;
    this.logFile = hasLog ? native.logPath : null;
    this.execId = native.execId;
    this.pid = native.pid;
  }

  /**
   * Yields the retained output, then all output until it ends, without loss: a slow reader slows the process. Leaving
   * early stops reading, not the process.
   */
  [Symbol.asyncIterator](): AsyncIterableIterator<OutputChunk> {
    return this.#chunks(callSite(this[Symbol.asyncIterator]));
  }

  async *#chunks(site: CallSite): AsyncGenerator<OutputChunk, undefined> {
    for await (const chunk of outputOf(this.#native, site)) yield toChunk(chunk);
    this.#onEnd?.();
  }

  /**
   * Returns the retained output after chunk `sinceSeq`, and waits up to `waitMs` for a first chunk.
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
  async read(options: ReadOutputOptions = {}): Promise<{ chunks: OutputChunk[]; done: boolean; lostBytes: number }> {
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
   * Writes to its standard input, as fast as it reads.
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
   * Closes its standard input.
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
   * Ends it with everything it started: TERM, the grace period, KILL; resolves when all of it has ended. With a `signal`,
   * only sends that to the whole tree.
   *
   * @example
   * ```ts
   * const server = await sandbox.spawn('npm start');
   * await server.kill('SIGHUP'); // only the signal
   * await server.kill(); // ends it
   * ```
   */
  async kill(signal?: NodeJS.Signals): Promise<void> {
    return call(callSite(this.kill), async () => this.#native.kill(check.optionalText('signal', signal)));
  }

  /**
   * Waits until a program listens on a port of the sandbox, such as a server that was just started. Rejects with
   * `TIMED_OUT` after `timeoutMs` (30 s by default), and with its output if this process ends before.
   *
   * @example
   * ```ts
   * const server = await sandbox.spawn('python -m http.server 8000');
   * await server.waitForPort(8000);
   * const { url } = await sandbox.forward(8000);
   * ```
   */
  async waitForPort(port: number, options: WaitForPortOptions = {}): Promise<void> {
    return abortable(callSite(this.waitForPort), options.signal, async (cancel) =>
      this.#native.waitForPort(
        check.port('port', port),
        check.timeout('timeoutMs', options.timeoutMs ?? PORT_TIMEOUT_MS),
        cancel,
      ),
    );
  }

  /**
   * Waits until it ends. After `timeoutMs` it rejects with `TIMED_OUT`; the process keeps running.
   *
   * @example
   * ```ts
   * const build = await sandbox.spawn('make');
   * const { ok, stderr } = await build.wait({ timeoutMs: 600_000 });
   * ```
   */
  async wait(options: WaitOptions = {}): Promise<ExecResult> {
    const result = await abortable(callSite(this.wait), options.signal, async (cancel) =>
      this.#native.wait(check.timeout('timeoutMs', options.timeoutMs), cancel),
    );
    this.#onEnd?.();
    return toExecResult(result);
  }
}
