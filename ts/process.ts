import type { NativeChunk, NativeProcess } from './internal/binding';
import { abortable, type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { toExecResult } from './internal/command';
import type { ExecResult, OutputChunk } from './options';

/** Chunks per native call: enough to fill a window, so that a fast stream costs few promises. */
const BATCH = 32;

const DEFAULT_MAX_CHUNKS = 1_000;

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
  readonly #native: NativeProcess;
  readonly #onEnd: (() => void) | undefined;

  /** @internal `onEnd` is called, perhaps several times, when this handle has seen the process's end. */
  constructor(native: NativeProcess, onEnd?: () => void) {
    this.#native = native;
    this.#onEnd = onEnd;
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
    const output = this.#native.output(0);
    try {
      for (;;) {
        const chunks = await call(site, () => output.nextMany(BATCH));
        if (chunks.length === 0) {
          this.#onEnd?.();
          return;
        }
        for (const chunk of chunks) yield toChunk(chunk);
      }
    } finally {
      output.stop();
    }
  }

  /** What is kept of its output after chunk `sinceSeq`, waiting up to `waitMs` for a first chunk. */
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

  /** Writes to its input, as fast as it reads. */
  async write(data: string | Uint8Array): Promise<void> {
    return call(callSite(this.write), async () => this.#native.write(check.bytes('data', data)));
  }

  /** Ends its input. */
  async end(): Promise<void> {
    return call(callSite(this.end), () => this.#native.end());
  }

  /**
   * Ends it with all that it started: TERM, the grace period, KILL; resolves when nothing of it is left. With a `signal`,
   * sends just that to the whole tree.
   */
  async kill(signal?: NodeJS.Signals): Promise<void> {
    return call(callSite(this.kill), async () => this.#native.kill(check.optionalText('signal', signal)));
  }

  /** Waits for its end. Giving up the wait leaves the process running: it rejects with `TIMED_OUT`. */
  async wait(options: { timeoutMs?: number; signal?: AbortSignal } = {}): Promise<ExecResult> {
    const result = await abortable(callSite(this.wait), options.signal, async (cancel) =>
      this.#native.wait(check.timeout('timeoutMs', options.timeoutMs), cancel),
    );
    this.#onEnd?.();
    return toExecResult(result);
  }
}
