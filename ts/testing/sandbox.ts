/** A fake sandbox: commands from the script, files in memory. */
import { createHash, randomBytes } from 'node:crypto';
import { SandboxError } from '../errors';
import { Files } from '../files';
import type * as Native from '../internal/binding';
import { DEFAULT_WORKDIR } from '../internal/images';
import { environment } from './calls';
import { Disk } from './disk';
import { FakeFiles } from './files';
import { isIsolated, toKey } from './key';
import { nativeProxy, unlessCancelled } from './native-proxy';
import { FakeProcess } from './process';
import type { Rulebook } from './rules';
import type { FakeAnswer, FakeContent, FakeExec } from './script';

/** What a fake sandbox uses of its manager. */
export interface FakeContext {
  rules: Rulebook;
  /** The object store, if there is one. */
  objects: Map<string, Buffer> | undefined;
  emit(type: string, sandbox: FakeSandbox, details?: Record<string, unknown>): void;
  closed(sandbox: FakeSandbox): void;
}

/** Of a call that never began it is said that nothing of it was sent. */
export function sandboxClosed(id: string, details: { sent?: false } = {}): SandboxError {
  return new SandboxError('SANDBOX_CLOSED', `the sandbox ${id} was closed; open() gives a new one`, details);
}

export class FakeSandbox extends FakeFiles implements Partial<Native.NativeSandbox> {
  readonly id = `sbx_${randomBytes(12).toString('hex')}`;
  readonly key: string;
  readonly session: string;
  readonly image: string;
  readonly workdir: string;
  readonly #order: Native.NativeOpen;
  readonly #context: FakeContext;
  readonly #processes: FakeProcess[] = [];
  readonly #createdAtMs = Date.now();
  readonly #files: Files;
  #limits: Native.NativeLimits;

  constructor(
    { scope, session }: { scope: string; session: string },
    image: string,
    order: Native.NativeOpen,
    context: FakeContext,
    files: Record<string, FakeContent>,
  ) {
    super(new Disk(order.workdir ?? DEFAULT_WORKDIR));
    this.key = toKey(scope, session);
    this.session = session;
    this.image = image;
    this.workdir = order.workdir ?? DEFAULT_WORKDIR;
    this.#order = order;
    this.#context = context;
    this.#limits = { cpus: 2, memoryMb: 2048, pids: 512, ...defined(order.limits) };
    // For the test itself: not recorded as calls, and usable after the end.
    this.#files = new Files(nativeProxy<Native.NativeSandbox>(this, 'sandbox'));
    for (const [path, content] of Object.entries(files)) this.disk.write({ path }, Buffer.from(content));
    for (const { path, data } of order.files) this.disk.write({ path }, data);
  }

  async exec(
    command: Native.NativeCommand,
    stdin?: Uint8Array | null,
    cancel?: unknown,
  ): Promise<Native.NativeExecResult> {
    const process = this.#start(command, stdin ?? new Uint8Array());
    return unlessCancelled(process.ended, cancel, () => process.kill());
  }

  execStreaming(command: Native.NativeCommand, stdin?: Uint8Array | null, cancel?: unknown): Native.NativeExecution {
    const process = this.#start(command, stdin ?? new Uint8Array());
    const output = process.output(0);
    const unlessAborted = <T>(work: Promise<T>) => unlessCancelled(work, cancel, () => process.kill());
    return {
      nextMany: (max) => unlessAborted(output.nextMany(max)),
      result: () => unlessAborted(process.ended),
      kill: () => process.kill(),
    };
  }

  async spawn(command: Native.NativeCommand): Promise<Native.NativeProcess> {
    const process = this.#start(command, command.keepStdin ? undefined : new Uint8Array());
    return nativeProxy<Native.NativeProcess>(process, 'process');
  }

  /** Throws if it cannot be started. */
  #start(native: Native.NativeCommand, input?: Uint8Array): FakeProcess {
    const process = new FakeProcess(this.#processes.length + 1, native);
    if (input) process.give(input);
    const exec = this.#toExec(native, process);
    try {
      checkCommand(native.command);
      const rule = this.#context.rules.forExec(exec);
      this.begin(process, rule.answer ? rule.answer(exec) : rule);
    } catch (error) {
      process.lose(error);
      throw error;
    }
    return process;
  }

  #toExec({ command, cwd, env, user }: Native.NativeCommand, process: FakeProcess): FakeExec {
    const stdin = async () => (await process.stdin).toString('utf8');
    return { command, cwd, user, stdin, files: this.#files, env: { ...this.#order.env, ...environment(env) } };
  }

  /** Runs a process as it is answered, now or later. */
  begin(process: FakeProcess, answer: FakeAnswer | Promise<FakeAnswer>): void {
    const go = (known: FakeAnswer) => {
      const { error, files = {} } = known;
      if (error)
        throw new SandboxError(error.code, error.message ?? `the script answers with ${error.code}`, error.details);
      for (const [path, content] of Object.entries(files)) {
        if (content === null) this.disk.remove(path, true);
        else this.disk.write({ path }, Buffer.from(content));
      }
      process.run(known);
    };
    if (!('then' in answer)) go(answer);
    this.#processes.push(process);
    const { execId, command } = process;
    this.#context.emit('exec-started', this, { execId, command: [command.command].flat().join(' ') });
    process.ended.then(
      ({ exitCode, signal = null, timedOut, oomKilled, durationMs }) =>
        this.#context.emit('exec-finished', this, { execId, exitCode, signal, timedOut, oomKilled, durationMs }),
      () => {},
    );
    if ('then' in answer) answer.then(go).catch((error) => process.lose(error));
  }

  get files(): Files {
    return this.#files;
  }

  async process(execId: string): Promise<Native.NativeProcess> {
    const found = this.#processes.find((process) => process.execId === execId);
    if (found) return nativeProxy<Native.NativeProcess>(found, 'process');
    throw new SandboxError('PROCESS_NOT_FOUND', `there is no process ${JSON.stringify(execId)} in this sandbox`);
  }

  async processes(): Promise<Native.NativeProcessInfo[]> {
    return this.#processes.map(({ execId, pid, command, startedAt, exitCode }) => ({
      execId,
      pid,
      command: [command.command].flat().join(' '),
      ageMs: Date.now() - startedAt,
      exitCode,
    }));
  }

  #store(): Map<string, Buffer> {
    if (this.#context.objects) return this.#context.objects;
    const message = 'this manager has no object store to stage from or publish to; give the fake "objects", if only {}';
    throw new SandboxError('INVALID_ARGUMENT', message);
  }

  async stage(key: string, write: Native.NativeWrite, sha256?: string | null): Promise<Native.NativeStaged> {
    const bytes = this.#store().get(key);
    if (!bytes) throw new SandboxError('FILE_NOT_FOUND', `there is no object "${key}" in the store`, { key });
    const digest = sha256Of(bytes);
    if (sha256 && sha256 !== digest) {
      throw new SandboxError('PROTOCOL', `the object "${key}" has the SHA-256 ${digest}, not ${sha256}`, { key });
    }
    return { ...this.disk.write(write, bytes), sha256: digest };
  }

  async publish(path: string, key?: string | null): Promise<Native.NativePublished> {
    const store = this.#store();
    const { bytes } = this.disk.read(path);
    const name = key ?? `files/f_${randomBytes(12).toString('hex')}`;
    store.set(name, bytes);
    return { key: name, sizeBytes: bytes.length, sha256: sha256Of(bytes) };
  }

  async stats(): Promise<Native.NativeStats> {
    const pids = 1 + this.#processes.filter(({ exitCode }) => exitCode === undefined).length;
    const nothing = { cpuMs: 0, memoryBytes: 0, memoryPeakBytes: 0, ioReadBytes: 0, ioWriteBytes: 0, oomKills: 0 };
    return { ...nothing, pids, workspaceBytes: this.disk.usedBytes() };
  }

  async info(): Promise<Native.NativeSandboxInfo> {
    return {
      id: this.id,
      key: this.key,
      session: this.session,
      isolated: isIsolated(this.session),
      image: this.image,
      state: 'running',
      workdir: this.workdir,
      createdAtMs: this.#createdAtMs,
      limits: this.#limits,
      network: this.#order.network === 'open',
      labels: this.#order.labels,
    };
  }

  async setLimits(limits: Native.NativeLimits): Promise<void> {
    this.#limits = { ...this.#limits, ...defined(limits) };
  }

  async extend(): Promise<void> {}

  async close(_keepData?: boolean | null): Promise<void> {
    this.end('closed');
  }

  /** Ends it with everything that runs in it. Idempotent. */
  end(reason: string): void {
    if (this.isClosed) return;
    this.markGone(sandboxClosed(this.id));
    for (const process of this.#processes) process.lose(sandboxClosed(this.id));
    this.#context.closed(this);
    this.#context.emit('closed', this, { reason });
  }
}

function checkCommand(command: string | string[]): void {
  const isEmpty = command.length === 0 || command[0] === '';
  if (isEmpty) throw new SandboxError('INVALID_ARGUMENT', 'the command is empty');
  if ([command].flat().join('').includes('\0')) throw new SandboxError('INVALID_ARGUMENT', 'a command has no NUL byte');
}

function sha256Of(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function defined<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Partial<T>;
}
