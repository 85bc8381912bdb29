/** A command of a fake sandbox: first its output, then its duration, then its end. */
import { constants } from 'node:os';
import { SandboxError } from '../errors';
import type {
  NativeChunk,
  NativeCommand,
  NativeExecResult,
  NativeOutput,
  NativeProcess,
  NativeRecent,
} from '../internal/binding';
import { unlessCancelled } from './native-proxy';
import type { FakeAnswer } from './script';

/** Signals that do not end a process by default, or in this fake. */
const HARMLESS = ['SIGCHLD', 'SIGCONT', 'SIGURG', 'SIGWINCH', 'SIGUSR1', 'SIGUSR2'];

interface End {
  exitCode: number;
  signal?: string;
  timedOut?: boolean;
  oomKilled?: boolean;
}

export class FakeProcess implements Partial<NativeProcess> {
  readonly execId: string;
  readonly pid: number;
  readonly logPath: string;
  readonly command: NativeCommand;
  readonly startedAt = Date.now();
  exitCode: number | undefined;
  /** Rejects if the sandbox ends first. */
  readonly ended: Promise<NativeExecResult>;
  /** All input, once it has ended. */
  readonly stdin: Promise<Buffer>;
  readonly #chunks: NativeChunk[] = [];
  readonly #input: Uint8Array[] = [];
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #changed = new Set<() => void>();
  #settle: { resolve(result: NativeExecResult): void; reject(error: unknown): void } = { resolve() {}, reject() {} };
  #endInput: (input: Buffer) => void = () => {};
  #isInputOver = false;
  #isOver = false;

  constructor(number: number, command: NativeCommand) {
    this.execId = `exec_fake${number}`;
    this.pid = 100 + number;
    this.logPath = `/tmp/.cofferdam/${this.execId}.log`;
    this.command = command;
    this.ended = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.ended.catch(() => {});
    this.stdin = new Promise((resolve) => {
      this.#endInput = resolve;
    });
    const { timeoutMs } = command;
    if (timeoutMs !== undefined && timeoutMs < 2 ** 31) {
      const onTimeout = () => this.#finish({ exitCode: 143, signal: 'SIGTERM', timedOut: true });
      this.#timers.push(setTimeout(onTimeout, timeoutMs));
    }
  }

  /** Runs as the script says. */
  run({ stdout = [], stderr = [], exitCode = 0, delayMs = 0, oomKilled = false }: FakeAnswer): void {
    for (const text of [stdout].flat()) this.#print(text as string, false);
    for (const text of [stderr].flat()) this.#print(text as string, true);
    const end = () => this.#finish({ exitCode, oomKilled, signal: oomKilled ? 'SIGKILL' : undefined });
    if (delayMs === 0) end();
    else if (Number.isFinite(delayMs)) this.#timers.push(setTimeout(end, delayMs));
  }

  #print(text: string, isStderr: boolean): void {
    if (text === '' || this.#isOver) return;
    this.#chunks.push({ seq: this.#chunks.length + 1, isStderr, data: Buffer.from(text) });
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#changed) listener();
  }

  #stop(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#isInputOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    return true;
  }

  #finish({ exitCode, signal, timedOut = false, oomKilled = false }: End): void {
    if (!this.#stop()) return;
    this.exitCode = exitCode;
    const [out, err] = [this.#retained(false), this.#retained(true)];
    this.#settle.resolve({
      execId: this.execId,
      exitCode,
      signal,
      stdout: out.text,
      stderr: err.text,
      durationMs: Date.now() - this.startedAt,
      timedOut,
      oomKilled,
      killed: [],
      stdoutTruncated: out.isCut,
      stderrTruncated: err.isCut,
    });
    this.#notify();
  }

  /** Head and tail of a long stream. */
  #retained(isStderr: boolean): { text: string; isCut: boolean } {
    const bytes = Buffer.concat(this.#chunks.filter((chunk) => chunk.isStderr === isStderr).map(({ data }) => data));
    const max = this.command.maxOutputBytes;
    if (bytes.length <= max) return { text: bytes.toString('utf8'), isCut: false };
    const note = `\n[… ${bytes.length - max} bytes left out …]\n`;
    const half = Math.max(0, Math.floor((max - Buffer.byteLength(note)) / 2));
    if (half === 0) return { text: bytes.subarray(0, max).toString('utf8'), isCut: true };
    return { text: bytes.subarray(0, half) + note + bytes.subarray(bytes.length - half), isCut: true };
  }

  /** Ends without a result: its sandbox is gone, or it never started. */
  lose(error: unknown): void {
    if (!this.#stop()) return;
    this.exitCode = 137;
    this.#settle.reject(error);
    this.#notify();
  }

  async kill(signal?: string): Promise<void> {
    const name = signal ?? 'SIGTERM';
    const number = constants.signals[name as NodeJS.Signals];
    if (number === undefined)
      throw new SandboxError('INVALID_ARGUMENT', `${JSON.stringify(signal)} is not the name of a signal`);
    if (!HARMLESS.includes(name)) this.#finish({ exitCode: 128 + number, signal: name });
  }

  /** All of its input, before it starts. */
  give(input: Uint8Array): void {
    this.#isInputOver = true;
    this.#endInput(Buffer.from(input));
  }

  async write(data: Uint8Array): Promise<void> {
    if (this.#isInputOver) throw new SandboxError('INVALID_ARGUMENT', 'its standard input was closed');
    this.#input.push(data);
  }

  async end(): Promise<void> {
    this.#isInputOver = true;
    this.#endInput(Buffer.concat(this.#input));
  }

  wait(timeoutMs?: number | null, cancel?: unknown): Promise<NativeExecResult> {
    if (typeof timeoutMs !== 'number') return unlessCancelled(this.ended, cancel);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const message = `${this.execId} still runs after ${timeoutMs} ms; wait again, or kill() it`;
      const onTimeout = () => reject(new SandboxError('TIMED_OUT', message, { execId: this.execId }));
      timer = setTimeout(onTimeout, Math.min(timeoutMs, 2 ** 31 - 1));
    });
    return unlessCancelled(Promise.race([this.ended, late]), cancel).finally(() => clearTimeout(timer));
  }

  /** Resolves at the next change, or after `waitMs`. */
  #change(waitMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#changed.delete(done);
        clearTimeout(timer);
        resolve();
      };
      const timer = waitMs === undefined ? undefined : setTimeout(done, Math.min(waitMs, 2 ** 31 - 1));
      this.#changed.add(done);
    });
  }

  async read(sinceSeq: number, maxChunks: number, waitMs: number): Promise<NativeRecent> {
    const fresh = () => this.#chunks.filter(({ seq }) => seq > sinceSeq);
    if (waitMs > 0 && fresh().length === 0 && !this.#isOver) await this.#change(waitMs);
    const all = fresh();
    const chunks = all.slice(0, maxChunks);
    return { chunks, done: this.#isOver && chunks.length === all.length, lostBytes: 0 };
  }

  output(sinceSeq: number): NativeOutput {
    let next = sinceSeq;
    let isStopped = false;
    return {
      nextMany: async (max) => {
        while (!this.#isOver && !isStopped && this.#chunks.length <= next) await this.#change();
        const batch = isStopped ? [] : this.#chunks.slice(next, next + max);
        next += batch.length;
        // A lost process has no last chunk: reject here.
        if (batch.length === 0 && !isStopped) await this.ended;
        return batch;
      },
      stop: () => {
        isStopped = true;
        this.#notify();
      },
    };
  }
}
