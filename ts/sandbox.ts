import { Files } from './files';
import type { NativeProcess, NativeSandbox } from './internal/binding';
import { abortable, type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { EXEC_TIMEOUT_MS, toExecResult, toNativeCommand } from './internal/command';
import { toSandboxInfo } from './internal/info';
import type { Command, ExecOptions, ExecResult, ProcessInfo, SandboxInfo, SpawnOptions } from './options';
import { Process } from './process';

/**
 * A persistent Linux computer for an agent.
 *
 * @example
 * ```ts
 * await using sandbox = await manager.open({ image: 'python' });
 * await sandbox.files.write('main.py', 'print(6 * 7)');
 * const { stdout } = await sandbox.exec('python main.py'); // '42\n'
 * ```
 */
export class Sandbox implements AsyncDisposable {
  /** `sbx_…` */
  readonly id: string;
  /** `workflow:wf_abc123:default` */
  readonly key: string;
  /** Resolved: `python:3.11-slim`. */
  readonly image: string;
  /** Where commands run and relative paths start. */
  readonly workdir: string;
  /** False when the session was there already. */
  readonly created: boolean;
  readonly files: Files;
  readonly #native: NativeSandbox;

  /** @internal */
  constructor(native: NativeSandbox) {
    this.#native = native;
    this.id = native.id;
    this.key = native.key;
    this.image = native.image;
    this.workdir = native.workdir;
    this.created = native.created;
    this.files = new Files(native);
  }

  /**
   * Runs a command to its end. A command that fails, is killed or runs out of time is a result, not an error; one that
   * cannot be started rejects with `COMMAND_NOT_FOUND`.
   */
  async exec(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    const site = callSite(this.exec);
    await call(site, async () => check.object('options', options));
    if (options.onStdout || options.onStderr) return this.#execAloud(site, command, options);
    return abortable(site, options.signal, async (cancel) => {
      const stdin = options.stdin === undefined ? undefined : check.bytes('stdin', options.stdin);
      const native = toNativeCommand(command, { timeoutMs: EXEC_TIMEOUT_MS, ...options }, false);
      return toExecResult(await this.#native.exec(native, stdin, cancel));
    });
  }

  /** With callbacks a command is a process that is followed: a slow callback slows the command, and nothing piles up. */
  async #execAloud(site: CallSite, command: Command, options: ExecOptions): Promise<ExecResult> {
    const { stdin, ...rest } = options;
    const process = await this.#spawn(site, command, { timeoutMs: EXEC_TIMEOUT_MS, ...rest }, stdin !== undefined);
    const fed = stdin === undefined ? undefined : feed(process, check.bytes('stdin', stdin));
    await follow(process, options);
    await fed;
    return process.wait({ signal: options.signal });
  }

  /** Starts a command that goes on by itself. */
  async spawn(command: Command, options: SpawnOptions = {}): Promise<Process> {
    const site = callSite(this.spawn);
    await call(site, async () => check.object('options', options));
    const process = await this.#spawn(site, command, options, true);
    if (options.onStdout || options.onStderr) {
      // Who waits for the process is told what went wrong with it; a stream that merely ended early is not that.
      follow(process, options).catch(() => {});
    }
    return process;
  }

  async #spawn(site: CallSite, command: Command, options: SpawnOptions, keepStdin: boolean): Promise<Process> {
    const { signal } = options;
    const native: NativeProcess = await abortable(site, signal, async () =>
      this.#native.spawn(toNativeCommand(command, options, keepStdin)),
    );
    if (signal?.aborted) {
      // While it was starting: nobody has heard of it, so nobody else can end it.
      await native.kill().catch(() => {});
      throw signal.reason;
    }
    return new Process(native, signal && endOnAbort(native, signal));
  }

  /** Comes back to a process, also one that another program started. */
  async process(execId: string): Promise<Process> {
    return call(
      callSite(this.process),
      async () => new Process(await this.#native.process(check.text('execId', execId))),
    );
  }

  /** All processes that were started through the API, with those that ended lately. */
  async processes(): Promise<ProcessInfo[]> {
    const processes = await call(callSite(this.processes), () => this.#native.processes());
    return processes.map(({ execId, pid, command, ageMs, exitCode }) => ({
      execId,
      pid,
      command,
      startedAt: new Date(Date.now() - ageMs),
      exitCode: exitCode ?? null,
    }));
  }

  /** What the engine records of it. */
  async info(): Promise<SandboxInfo> {
    return call(callSite(this.info), async () => toSandboxInfo(await this.#native.info()));
  }

  /** Ends it with everything in it. Twice is fine. */
  async close(): Promise<void> {
    return call(callSite(this.close), () => this.#native.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Input that the command does not want is not an error: it may end without reading it. */
async function feed(process: Process, data: Uint8Array): Promise<void> {
  await process.write(data).catch(() => {});
  await process.end().catch(() => {});
}

/** Calls back for each chunk. A callback that throws ends the process: nobody is left to hear it. */
async function follow(process: Process, options: ExecOptions): Promise<void> {
  try {
    for await (const chunk of process) {
      const callback = chunk.stream === 'stdout' ? options.onStdout : options.onStderr;
      callback?.(chunk.text);
    }
  } catch (error) {
    await process.kill().catch(() => {});
    throw options.signal?.aborted ? options.signal.reason : error;
  }
  if (options.signal?.aborted) {
    await process.kill().catch(() => {});
    throw options.signal.reason;
  }
}

/** Ends the process when the signal aborts; gives what stops listening for that. */
function endOnAbort(native: NativeProcess, signal: AbortSignal): () => void {
  const onAbort = () => {
    native.kill().catch(() => {});
  };
  signal.addEventListener('abort', onAbort, { once: true });
  return () => signal.removeEventListener('abort', onAbort);
}
