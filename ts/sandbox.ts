import type { Command, ExecOptions, ExecResult, SpawnOptions } from './command';
import { Files } from './files';
import type { ForwardOptions, PortForward } from './forward';
import type { NativeSandbox } from './internal/binding';
import { abortable, call, callSite } from './internal/call';
import * as check from './internal/check';
import { toNativeCommand } from './internal/command';
import { CommandRunner } from './internal/command-runner';
import { toSandboxInfo } from './internal/info';
import { toNativeLimits } from './internal/open';
import { Staging } from './internal/staging';
import { standard, type Telemetry } from './internal/telemetry';
import type { CloseOptions, ExtendOptions } from './lifetime';
import type { Limits } from './open-options';
import { Process, type ProcessInfo } from './process';
import type { SandboxInfo, SandboxStats } from './sandbox-info';
import type { PublishOptions, PublishResult, StageOptions, StageResult } from './store';
import { size, Terminal, type TerminalOptions } from './terminal';

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
  /** The session's name within its scope: `default`, the name given to `open()`, or one made up for an isolated session. */
  readonly session: string;
  /** Resolved: `python:3.11-slim`. */
  readonly image: string;
  /** Where commands run and relative paths start. */
  readonly workdir: string;
  /** False if the session existed already. */
  readonly created: boolean;
  /** Its files: read, write, search, watch, upload and download. */
  readonly files: Files;
  readonly #native: NativeSandbox;
  readonly #commands: CommandRunner;
  readonly #staging: Staging;

  /** @internal */
  constructor(native: NativeSandbox, telemetry: Telemetry = standard) {
    this.#native = native;
    this.#commands = new CommandRunner(native, telemetry);
    this.#staging = new Staging(native, telemetry);
    this.id = native.id;
    this.key = native.key;
    this.session = native.session;
    this.image = native.image;
    this.workdir = native.workdir;
    this.created = native.created;
    this.files = new Files(native, telemetry);
  }

  /**
   * Runs a command to its end. A command that fails, is killed or times out resolves with its result; with
   * `reject: true` it rejects with `COMMAND_FAILED`. One that cannot be started rejects with `COMMAND_NOT_FOUND`.
   *
   * @example
   * ```ts
   * const { exitCode, stdout } = await sandbox.exec('npm test', { timeoutMs: 60_000, cwd: 'app' });
   * await sandbox.exec('npm run build', { reject: true });
   * ```
   */
  async exec(command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    return this.#commands.exec(callSite(this.exec), command, options);
  }

  /**
   * Starts a command and leaves it running.
   *
   * @example
   * ```ts
   * const server = await sandbox.spawn('npm start', { env: { PORT: '8080' } });
   * await server.waitForPort(8080);
   * ```
   */
  async spawn(command: Command, options: SpawnOptions = {}): Promise<Process> {
    return this.#commands.spawn(callSite(this.spawn), command, options);
  }

  /**
   * Opens a terminal with the user's shell, or reattaches to one by its `execId`.
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
   * Makes a port of the sandbox reachable on the host's loopback address. It goes through the guest, and needs no network
   * access of the sandbox.
   *
   * @example
   * ```ts
   * await using web = await sandbox.forward(8000);
   * const page = await fetch(web.url);
   * ```
   */
  async forward(port: number, options: ForwardOptions = {}): Promise<PortForward> {
    return call(callSite(this.forward), async () => {
      const wanted = options.hostPort === undefined ? undefined : check.port('hostPort', options.hostPort);
      const native = await this.#native.forward(check.port('port', port), wanted);
      const close = async () => native.close();
      const { hostPort } = native;
      return { hostPort, url: `http://127.0.0.1:${hostPort}`, close, [Symbol.asyncDispose]: close };
    });
  }

  /**
   * Copies an object of the manager's `store` into the sandbox, streamed through the host. The file appears whole and
   * verified, or not at all. A missing object rejects with `FILE_NOT_FOUND`, a corrupt one with `PROTOCOL`.
   *
   * @example
   * ```ts
   * const { path, sizeBytes, sha256 } = await sandbox.stage('datasets/2024.csv', 'data/2024.csv');
   * ```
   */
  async stage(key: string, path: string, options: StageOptions = {}): Promise<StageResult> {
    return this.#staging.stage(callSite(this.stage), key, path, options);
  }

  /**
   * Copies a file of the sandbox into the manager's `store`, streamed through the host; by default under
   * `files/f_<random>`. The object appears whole or not at all. A directory rejects with `IS_A_DIRECTORY`.
   *
   * @example
   * ```ts
   * const { key, sha256 } = await sandbox.publish('out/report.pdf');
   * const other = await manager.open({ session: 'reader' });
   * await other.stage(key, 'report.pdf', { sha256 });
   * ```
   */
  async publish(path: string, key?: string, options: PublishOptions = {}): Promise<PublishResult> {
    return this.#staging.publish(callSite(this.publish), path, key, options);
  }

  /**
   * Returns what it uses. Cheap enough to call every second, and no activity for the idle timeout.
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
   * Returns a process by its id, also one that another program started.
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
   * Lists the processes that were started through the API, including those that ended recently.
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
   * Returns its current state.
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
   * Changes what it may use while it runs. Limits that are left out stay as they are.
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
   * Postpones its end: sets a new idle timeout, and a new maximum lifetime counted from now. 0 means no limit.
   *
   * @example
   * ```ts
   * await sandbox.extend({ idleTimeoutMs: 3_600_000 });
   * ```
   */
  async extend(options: ExtendOptions): Promise<void> {
    return call(callSite(this.extend), async () => {
      check.object('options', options);
      const term = (name: 'idleTimeoutMs' | 'maxLifetimeMs') =>
        options[name] === undefined ? undefined : (check.timeout(name, options[name]) ?? 0);
      return this.#native.extend(term('idleTimeoutMs'), term('maxLifetimeMs'));
    });
  }

  /**
   * Ends everything that runs in it; its persistent workspace stays. Only for a sandbox that was opened with
   * `persist: true`. `start()` or the next `open()` of the session starts it again.
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
   * Starts a stopped sandbox again with its workspace; everything else is as in the image.
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
   * Ends it with everything in it. A persistent workspace stays for the next `open()` of the session, unless `keepData`
   * is false. Idempotent.
   *
   * @example
   * ```ts
   * await sandbox.close({ keepData: false });
   * ```
   */
  async close(options: CloseOptions = {}): Promise<void> {
    return call(callSite(this.close), async () =>
      this.#native.close(options.keepData === undefined ? undefined : check.boolean('keepData', options.keepData)),
    );
  }

  /** Same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
