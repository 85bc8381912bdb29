/** Commands of one sandbox: run to their end, or started and left running. */
import type { Command, ExecOptions, ExecResult, SpawnOptions } from '../command';
import { Process } from '../process';
import type { NativeProcess, NativeSandbox } from './binding';
import { abortable, at, type CallSite, call } from './call';
import * as check from './check';
import { EXEC_TIMEOUT_MS, toExecResult, toNativeCommand } from './command';
import { commandFailed, hasFailed } from './command-failed';
import { execStreaming } from './execution';
import { endOnAbort, feed, follow, isStream } from './follow';
import { type Activity, about, execOutcome, type Telemetry, timeoutSeconds } from './telemetry';

export class CommandRunner {
  readonly #native: NativeSandbox;
  readonly #telemetry: Telemetry;

  constructor(native: NativeSandbox, telemetry: Telemetry) {
    this.#native = native;
    this.#telemetry = telemetry;
  }

  async exec(site: CallSite, command: Command, options: ExecOptions): Promise<ExecResult> {
    const rejects = await call(site, async () => {
      check.object('options', options);
      return check.boolean('reject', options.reject ?? false);
    });
    const result = await this.#telemetry.observed(
      () => this.#activity(command, options),
      () => this.#exec(site, command, options),
      execOutcome,
    );
    if (rejects && hasFailed(result)) throw at(site, commandFailed(command, result));
    return result;
  }

  async spawn(site: CallSite, command: Command, options: SpawnOptions): Promise<Process> {
    await call(site, async () => check.object('options', options));
    const process = await this.#spawn(site, command, options, true);
    if (options.onStdout || options.onStderr) {
      // wait() reports what went wrong with the process; a stream that merely ended early is no error of it.
      follow(process, options).catch(() => {});
    }
    return process;
  }

  #activity(command: Command, { timeoutMs = EXEC_TIMEOUT_MS }: ExecOptions): Activity {
    const attributes = {
      ...about(this.#native),
      ...timeoutSeconds(timeoutMs),
      ...this.#telemetry.details('sandbox.command', command),
    };
    return { kind: 'exec', name: 'sandbox.exec', labels: { image: this.#native.image }, attributes };
  }

  async #exec(site: CallSite, command: Command, options: ExecOptions): Promise<ExecResult> {
    const { stdin: input } = options;
    if (isStream(input)) return this.#execFed(site, command, options);
    const toCommand = () => ({
      command: toNativeCommand(command, { timeoutMs: EXEC_TIMEOUT_MS, ...options }, false),
      stdin: input === undefined ? undefined : check.bytes('stdin', input),
    });
    if (options.onStdout || options.onStderr) {
      return toExecResult(await execStreaming(site, this.#native, toCommand, options));
    }
    return abortable(site, options.signal, async (cancel) => {
      const { command: native, stdin } = toCommand();
      return toExecResult(await this.#native.exec(native, stdin, cancel));
    });
  }

  /** With a stream as its input, a command is a process that is fed and followed. */
  async #execFed(site: CallSite, command: Command, options: ExecOptions): Promise<ExecResult> {
    const { stdin, ...rest } = options;
    const process = await this.#spawn(site, command, { timeoutMs: EXEC_TIMEOUT_MS, ...rest }, stdin !== undefined);
    const fed = stdin === undefined ? undefined : feed(process, stdin);
    await follow(process, options);
    await fed;
    return process.wait({ signal: options.signal });
  }

  async #spawn(site: CallSite, command: Command, options: SpawnOptions, keepStdin: boolean): Promise<Process> {
    const { signal } = options;
    const native: NativeProcess = await abortable(site, signal, async () =>
      this.#native.spawn(toNativeCommand(command, options, keepStdin)),
    );
    if (signal?.aborted) {
      // Aborted while it was starting: no one else knows of it, so no one else can end it.
      await native.kill().catch(() => {});
      throw signal.reason;
    }
    return new Process(native, signal && endOnAbort(native, signal), Boolean(options.logFile));
  }
}
