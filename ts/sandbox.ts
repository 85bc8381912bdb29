import { Files } from './files';
import type { NativeProcess, NativeSandbox } from './internal/binding';
import { abortable, type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { EXEC_TIMEOUT_MS, toExecResult, toNativeCommand } from './internal/command';
import { toNativeWrite } from './internal/file';
import { endOnAbort, feed, follow, isStream } from './internal/follow';
import { toSandboxInfo } from './internal/info';
import { toNativeLimits } from './internal/open';
import {
  type Activity,
  about,
  execOutcome,
  standard,
  type Telemetry,
  timeoutSeconds,
  transfer,
  transferOutcome,
} from './internal/telemetry';
import type {
  Command,
  ExecOptions,
  ExecResult,
  Limits,
  PortForward,
  ProcessInfo,
  PublishOptions,
  SandboxInfo,
  SandboxStats,
  SpawnOptions,
  StageOptions,
  TerminalOptions,
} from './options';
import { Process } from './process';
import { size, Terminal } from './terminal';

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
  /** Its files: read, write, search, watch, and carry from and to the host. */
  readonly files: Files;
  readonly #native: NativeSandbox;
  readonly #telemetry: Telemetry;

  /** @internal */
  constructor(native: NativeSandbox, telemetry: Telemetry = standard) {
    this.#native = native;
    this.#telemetry = telemetry;
    this.id = native.id;
    this.key = native.key;
    this.image = native.image;
    this.workdir = native.workdir;
    this.created = native.created;
    this.files = new Files(native, telemetry);
  }

  /**
   * Runs a command to its end. A command that fails, is killed or runs out of time is a result, not an error; one that
   * cannot be started rejects with `COMMAND_NOT_FOUND`.
   *
   * @example
   * ```ts
   * const { exitCode, stdout } = await sandbox.exec('npm test', { timeoutMs: 60_000, cwd: 'app' });
   * ```
   */
  async exec(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    const site = callSite(this.exec);
    await call(site, async () => check.object('options', options));
    return this.#telemetry.observed(
      () => this.#execution(command, options),
      () => this.#exec(site, command, options),
      execOutcome,
    );
  }

  #execution(command: Command, { timeoutMs = EXEC_TIMEOUT_MS }: ExecOptions): Activity {
    const attributes = {
      ...about(this.#native),
      ...timeoutSeconds(timeoutMs),
      ...this.#telemetry.details('sandbox.command', command),
    };
    return { kind: 'exec', name: 'sandbox.exec', labels: { image: this.image }, attributes };
  }

  async #exec(site: CallSite, command: Command, options: ExecOptions): Promise<ExecResult> {
    const { stdin: input } = options;
    if (options.onStdout || options.onStderr || isStream(input)) return this.#execAloud(site, command, options);
    return abortable(site, options.signal, async (cancel) => {
      const stdin = input === undefined ? undefined : check.bytes('stdin', input);
      const native = toNativeCommand(command, { timeoutMs: EXEC_TIMEOUT_MS, ...options }, false);
      return toExecResult(await this.#native.exec(native, stdin, cancel));
    });
  }

  /** With callbacks a command is a process that is followed: a slow callback slows the command, and nothing piles up. */
  async #execAloud(site: CallSite, command: Command, options: ExecOptions): Promise<ExecResult> {
    const { stdin, ...rest } = options;
    const process = await this.#spawn(site, command, { timeoutMs: EXEC_TIMEOUT_MS, ...rest }, stdin !== undefined);
    const fed = stdin === undefined ? undefined : feed(process, stdin);
    await follow(process, options);
    await fed;
    return process.wait({ signal: options.signal });
  }

  /**
   * Starts a command that goes on by itself.
   *
   * @example
   * ```ts
   * const server = await sandbox.spawn('npm start', { env: { PORT: '8080' } });
   * await server.waitForPort(8080);
   * ```
   */
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
    return new Process(native, signal && endOnAbort(native, signal), Boolean(options.logFile));
  }

  /**
   * Opens a terminal with the user's own shell, or comes back to one by its `execId`.
   *
   * @example
   * ```ts
   * const terminal = await sandbox.terminal({ cols: 120, rows: 40 });
   * await terminal.write('top\n');
   * ```
   */
  async terminal(options: TerminalOptions = {}): Promise<Terminal> {
    return abortable(callSite(this.terminal), options.signal, async () => {
      if (options.execId !== undefined) {
        return new Terminal(await this.#native.process(check.text('execId', options.execId)));
      }
      const { command, cwd, env, user, detached } = options;
      const native = toNativeCommand(command ?? [], { cwd, env, user, detached }, true);
      return new Terminal(await this.#native.terminal(native, size(options)));
    });
  }

  /**
   * Makes a port of the sandbox reachable on the host's own loopback, through the guest: the sandbox's network may be off.
   *
   * @example
   * ```ts
   * await using web = await sandbox.forward(8000);
   * const page = await fetch(web.url);
   * ```
   */
  async forward(port: number, options: { hostPort?: number } = {}): Promise<PortForward> {
    return call(callSite(this.forward), async () => {
      const wanted = options.hostPort === undefined ? undefined : check.port('hostPort', options.hostPort);
      const native = await this.#native.forward(check.port('port', port), wanted);
      const close = async () => native.close();
      const { hostPort } = native;
      return { hostPort, url: `http://127.0.0.1:${hostPort}`, close, [Symbol.asyncDispose]: close };
    });
  }

  /**
   * Brings an object of the manager's `store` into the sandbox, streamed through the host. The file appears whole and
   * verified, or not at all; a missing object rejects with `FILE_NOT_FOUND`, one that is not what it should be with
   * `PROTOCOL`.
   *
   * @example
   * ```ts
   * const { path, sizeBytes, sha256 } = await sandbox.stage('datasets/2024.csv', 'data/2024.csv');
   * ```
   */
  async stage(
    key: string,
    path: string,
    options: StageOptions = {},
  ): Promise<{ path: string; sizeBytes: number; sha256: string }> {
    const site = callSite(this.stage);
    await call(site, async () => check.object('options', options));
    const stage = () =>
      abortable(site, options.signal, async (cancel) =>
        this.#native.stage(
          check.text('key', key),
          toNativeWrite(path, options),
          check.optionalText('sha256', options.sha256),
          check.optionalCount('maxBytes', options.maxBytes),
          cancel,
        ),
      );
    return this.#telemetry.observed(
      () => transfer('stage', this.#native, this.#telemetry, path),
      stage,
      transferOutcome,
    );
  }

  /**
   * Stores a file of the sandbox in the manager's `store`, streamed through the host, under `files/f_<random>` unless told.
   * The object appears whole or not at all. A directory rejects with `IS_A_DIRECTORY`.
   *
   * @example
   * ```ts
   * const { key, sha256 } = await sandbox.publish('out/report.pdf');
   * const other = await manager.open({ session: 'reader' });
   * await other.stage(key, 'report.pdf', { sha256 });
   * ```
   */
  async publish(
    path: string,
    key?: string,
    options: PublishOptions = {},
  ): Promise<{ key: string; sizeBytes: number; sha256: string }> {
    const site = callSite(this.publish);
    await call(site, async () => check.object('options', options));
    const publish = () =>
      abortable(site, options.signal, async (cancel) =>
        this.#native.publish(
          check.text('path', path),
          check.optionalText('key', key),
          check.optionalCount('maxBytes', options.maxBytes),
          cancel,
        ),
      );
    return this.#telemetry.observed(
      () => transfer('publish', this.#native, this.#telemetry, path),
      publish,
      transferOutcome,
    );
  }

  /**
   * What it uses. Cheap enough to ask each second, and not counted as activity.
   *
   * @example
   * ```ts
   * const { memoryBytes, cpuMs } = await sandbox.stats();
   * ```
   */
  async stats(): Promise<SandboxStats> {
    return call(callSite(this.stats), () => this.#native.stats());
  }

  /**
   * Comes back to a process, also one that another program started.
   *
   * @example
   * ```ts
   * const build = await sandbox.process('exec_0123456789abcdef');
   * const { chunks } = await build.read({ waitMs: 1000 });
   * ```
   */
  async process(execId: string): Promise<Process> {
    return call(
      callSite(this.process),
      async () => new Process(await this.#native.process(check.text('execId', execId))),
    );
  }

  /**
   * All processes that were started through the API, with those that ended lately.
   *
   * @example
   * ```ts
   * for (const { execId, command, exitCode } of await sandbox.processes()) console.log(execId, command, exitCode ?? 'running');
   * ```
   */
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

  /**
   * What it is, as it is now.
   *
   * @example
   * ```ts
   * const { state, expiresAt } = await sandbox.info();
   * ```
   */
  async info(): Promise<SandboxInfo> {
    return call(callSite(this.info), async () => toSandboxInfo(await this.#native.info()));
  }

  /**
   * Changes what it may use while it runs; limits that are left out stay.
   *
   * @example
   * ```ts
   * await sandbox.setLimits({ memoryMb: 4096, cpus: 2 });
   * ```
   */
  async setLimits(limits: Limits): Promise<void> {
    return call(callSite(this.setLimits), async () => {
      check.object('limits', limits);
      return this.#native.setLimits(toNativeLimits('limits', limits));
    });
  }

  /**
   * Puts its end off: the idle timeout is the new one from now on, and it lives for at most `maxLifetimeMs` from now. 0
   * means without that limit.
   *
   * @example
   * ```ts
   * await sandbox.extend({ idleTimeoutMs: 3_600_000 });
   * ```
   */
  async extend(options: { idleTimeoutMs?: number; maxLifetimeMs?: number }): Promise<void> {
    return call(callSite(this.extend), async () => {
      check.object('options', options);
      const term = (name: 'idleTimeoutMs' | 'maxLifetimeMs') =>
        options[name] === undefined ? undefined : (check.timeout(name, options[name]) ?? 0);
      return this.#native.extend(term('idleTimeoutMs'), term('maxLifetimeMs'));
    });
  }

  /**
   * Ends all that runs in it and keeps its workspace, for which it must have been opened with `persist: true`. `start()`
   * or the next `open()` of the session brings it back.
   *
   * @example
   * ```ts
   * const sandbox = await manager.open({ scope: { user: 'ada' }, persist: true });
   * await sandbox.stop();
   * ```
   */
  async stop(): Promise<void> {
    return call(callSite(this.stop), () => this.#native.stop());
  }

  /**
   * Makes a stopped one run again, with its workspace as it was; all else is as the image has it.
   *
   * @example
   * ```ts
   * await sandbox.start();
   * ```
   */
  async start(): Promise<void> {
    return call(callSite(this.start), () => this.#native.start());
  }

  /**
   * Ends it with everything in it. A workspace that was opened with `persist: true` stays for the next `open()` of the
   * session, unless `keepData` is false. Twice is fine.
   *
   * @example
   * ```ts
   * await sandbox.close({ keepData: false });
   * ```
   */
  async close(options: { keepData?: boolean } = {}): Promise<void> {
    return call(callSite(this.close), async () =>
      this.#native.close(options.keepData === undefined ? undefined : check.boolean('keepData', options.keepData)),
    );
  }

  /** As {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
