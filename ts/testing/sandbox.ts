/** A fake sandbox: its disk, its commands by the script, and whether it is still there. */
import { createHash, randomBytes } from 'node:crypto';
import { SandboxError } from '../errors';
import { Files } from '../files';
import type * as Native from '../internal/binding';
import { environment } from './calls';
import { download, upload } from './carry';
import { Disk } from './disk';
import { face, unlessCancelled } from './face';
import { FakeProcess } from './process';
import type { Rulebook } from './rules';
import type { FakeAnswer, FakeContent, FakeExec } from './script';
import { glob, grep, replace } from './search';

/** What a fake sandbox has of the manager's around it. */
export interface Surroundings {
  rules: Rulebook;
  /** The object store, if there is one. */
  objects: Map<string, Buffer> | undefined;
  emit(type: string, sandbox: FakeSandbox, details?: Record<string, unknown>): void;
  closed(sandbox: FakeSandbox): void;
}

const PIECE = 64 * 1024;

export function sandboxClosed(id: string): SandboxError {
  return new SandboxError('SANDBOX_CLOSED', `the sandbox ${id} was closed; open() gives a new one`);
}

export class FakeSandbox implements Partial<Native.NativeSandbox> {
  readonly id = `sbx_${randomBytes(12).toString('hex')}`;
  readonly key: string;
  readonly image: string;
  readonly workdir: string;
  readonly disk: Disk;
  isClosed = false;
  readonly #order: Native.NativeOpen;
  readonly #around: Surroundings;
  readonly #processes: FakeProcess[] = [];
  readonly #createdAtMs = Date.now();
  readonly #files: Files;
  /** Rejects with its end. */
  readonly #gone: Promise<never>;
  #leave: (error: SandboxError) => void = () => {};
  #limits: Native.NativeLimits;

  constructor(
    key: string,
    image: string,
    order: Native.NativeOpen,
    around: Surroundings,
    files: Record<string, FakeContent>,
  ) {
    this.key = key;
    this.image = image;
    this.workdir = order.workdir ?? '/workspace';
    this.disk = new Disk(this.workdir);
    this.#gone = new Promise((_, reject) => {
      this.#leave = reject;
    });
    this.#gone.catch(() => {});
    this.#order = order;
    this.#around = around;
    this.#limits = { cpus: 2, memoryMb: 2048, pids: 512, ...defined(order.limits) };
    // The test's own view of them: not told as calls, and there after the end, too.
    this.#files = new Files(face<Native.NativeSandbox>(this, 'sandbox'));
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

  async spawn(command: Native.NativeCommand): Promise<Native.NativeProcess> {
    const process = this.#start(command, command.keepStdin ? undefined : new Uint8Array());
    return face<Native.NativeProcess>(process, 'process');
  }

  /** Throws when it cannot be started. */
  #start(native: Native.NativeCommand, input?: Uint8Array): FakeProcess {
    const process = new FakeProcess(this.#processes.length + 1, native);
    if (input) process.give(input);
    const exec = this.#toExec(native, process);
    try {
      checkCommand(native.command);
      const rule = this.#around.rules.forExec(exec);
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

  /** Lets a process go as it is answered, at once or later. */
  begin(process: FakeProcess, answer: FakeAnswer | Promise<FakeAnswer>): void {
    const go = (known: FakeAnswer) => {
      const { error, files = {} } = known;
      if (error) throw new SandboxError(error.code, error.message ?? `the script says ${error.code}`, error.details);
      for (const [path, content] of Object.entries(files)) {
        if (content === null) this.disk.remove(path, true);
        else this.disk.write({ path }, Buffer.from(content));
      }
      process.go(known);
    };
    if (!('then' in answer)) go(answer);
    this.#processes.push(process);
    const { execId, command } = process;
    this.#around.emit('exec-started', this, { execId, command: [command.command].flat().join(' ') });
    process.ended.then(
      ({ exitCode, signal = null, timedOut, oomKilled, durationMs }) =>
        this.#around.emit('exec-finished', this, { execId, exitCode, signal, timedOut, oomKilled, durationMs }),
      () => {},
    );
    if ('then' in answer) answer.then(go).catch((error) => process.lose(error));
  }

  get files(): Files {
    return this.#files;
  }

  async process(execId: string): Promise<Native.NativeProcess> {
    const found = this.#processes.find((process) => process.execId === execId);
    if (found) return face<Native.NativeProcess>(found, 'process');
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

  async writeFile(write: Native.NativeWrite, data: Uint8Array): Promise<Native.NativeWritten> {
    return this.disk.write(write, data);
  }

  async fileWriter(write: Native.NativeWrite): Promise<Native.NativeFileWriter> {
    const pieces: Uint8Array[] = [];
    return {
      write: async (data) => {
        if (this.isClosed) throw sandboxClosed(this.id);
        pieces.push(Buffer.from(data));
      },
      finish: async () => this.disk.write(write, Buffer.concat(pieces)),
      lost: () => this.#gone,
      abandon() {},
    };
  }

  async writeMany(files: Native.NativeFile[]): Promise<void> {
    for (const { path, data } of files) this.disk.write({ path }, data);
  }

  async readFile(path: string, offset: number, limit: number): Promise<Native.NativeContent> {
    return this.disk.read(path, offset, limit);
  }

  async readLines(
    path: string,
    from: number,
    to: number | undefined | null,
    limit: number,
  ): Promise<Native.NativeContent> {
    return this.disk.readLines(path, from, to ?? undefined, limit);
  }

  async fileReader(path: string, offset: number, limit: number): Promise<Native.NativeFileReader> {
    const { bytes } = this.disk.read(path, offset, limit);
    let at = 0;
    const next = async () => {
      const piece = bytes.subarray(at, at + PIECE);
      at += piece.length;
      return piece.length > 0 ? piece : null;
    };
    return { next };
  }

  async list(path: string, recursive: boolean, maxEntries: number): Promise<Native.NativeEntry[]> {
    return this.disk.list(path, recursive, maxEntries);
  }

  async stat(path: string): Promise<Native.NativeEntry | null> {
    return this.disk.stat(path);
  }

  async mkdir(path: string, mode?: number | null): Promise<void> {
    this.disk.mkdir(path, mode ?? undefined);
  }

  async rename(from: string, to: string): Promise<void> {
    this.disk.move(from, to);
  }

  async copy(from: string, to: string): Promise<void> {
    this.disk.copy(from, to);
  }

  async remove(path: string, recursive: boolean): Promise<boolean> {
    return this.disk.remove(path, recursive);
  }

  async glob(request: Native.NativeGlob): Promise<Native.NativeEntries> {
    return glob(this.disk, request);
  }

  async grep(request: Native.NativeGrep): Promise<Native.NativeMatches> {
    return grep(this.disk, request);
  }

  async replace(request: Native.NativeReplace): Promise<Native.NativeReplaced> {
    return replace(this.disk, request);
  }

  async upload(transfer: Native.NativeTransfer, onProgress?: ((step: Native.NativeProgress) => void) | null) {
    return upload(this.disk, transfer, onProgress ?? undefined);
  }

  async download(transfer: Native.NativeTransfer, onProgress?: ((step: Native.NativeProgress) => void) | null) {
    return download(this.disk, transfer, onProgress ?? undefined);
  }

  #store(): Map<string, Buffer> {
    if (this.#around.objects) return this.#around.objects;
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
      image: this.image,
      state: 'running',
      workdir: this.workdir,
      createdAtMs: this.#createdAtMs,
      limits: this.#limits,
      network: this.#order.network,
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

  /** Once: with all that runs in it. */
  end(reason: string): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#leave(sandboxClosed(this.id));
    for (const process of this.#processes) process.lose(sandboxClosed(this.id));
    this.#around.closed(this);
    this.#around.emit('closed', this, { reason });
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
