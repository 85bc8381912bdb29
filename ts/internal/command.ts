/** Converts the options of a command to the addon's form, with defaults, and the result back. */
import type { Command, ExecOptions, ExecResult, SpawnOptions } from '../options';
import type { NativeCommand, NativeExecResult } from './binding';
import * as check from './check';

export const EXEC_TIMEOUT_MS = 5 * 60_000;
const KILL_GRACE_MS = 2_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_LOG_BYTES = 64 * 1024 * 1024;

function logBytes(logFile: SpawnOptions['logFile']): number | undefined {
  if (logFile === undefined || logFile === false) return undefined;
  return logFile === true ? MAX_LOG_BYTES : check.count('logFile.maxBytes', check.object('logFile', logFile).maxBytes);
}

export function toNativeCommand(
  command: Command,
  options: Omit<ExecOptions, 'stdin'> & SpawnOptions,
  keepStdin: boolean,
): NativeCommand {
  check.optionalFunction('onStdout', options.onStdout);
  check.optionalFunction('onStderr', options.onStderr);
  return {
    command: check.command(command),
    cwd: check.optionalText('cwd', options.cwd),
    env: Object.entries(check.texts('env', options.env)).flat(),
    user: check.optionalText('user', options.user),
    timeoutMs: check.timeout('timeoutMs', options.timeoutMs),
    killGraceMs: Math.min(check.millis('killGraceMs', options.killGraceMs ?? KILL_GRACE_MS), 2 ** 40),
    maxOutputBytes: check.count('maxOutputBytes', options.maxOutputBytes ?? MAX_OUTPUT_BYTES),
    detached: check.boolean('detached', options.detached ?? false),
    keepStdin,
    logBytes: logBytes(options.logFile),
  };
}

export function toExecResult(native: NativeExecResult): ExecResult {
  return {
    execId: native.execId,
    exitCode: native.exitCode,
    signal: native.signal ?? null,
    stdout: native.stdout,
    stderr: native.stderr,
    durationMs: native.durationMs,
    timedOut: native.timedOut,
    oomKilled: native.oomKilled,
    killed: native.killed,
    truncated: { stdout: native.stdoutTruncated, stderr: native.stderrTruncated },
    ok: native.exitCode === 0,
  };
}
