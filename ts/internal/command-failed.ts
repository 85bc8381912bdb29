/** The error of `exec()` with `reject: true`. */
import { SandboxError } from '../errors';
import type { Command, ExecResult } from '../options';

const MAX_COMMAND = 200;
const MAX_STDERR_LINES = 10;
const MAX_STDERR = 2000;

/** Also true for a command that handled the timeout's TERM and exited with 0. */
export function hasFailed({ ok, signal, timedOut }: ExecResult): boolean {
  return !ok || signal !== null || timedOut;
}

export function commandFailed(command: Command, result: ExecResult): SandboxError {
  const tail = lastLines(result.stderr);
  const message = `command ${shortened(command)} ${ending(result)}${tail && `; the end of its stderr:\n${tail}`}`;
  return new SandboxError('COMMAND_FAILED', message, { ...result });
}

function shortened(command: Command): string {
  const text = JSON.stringify(command);
  return text.length > MAX_COMMAND ? `${text.slice(0, MAX_COMMAND).toWellFormed()}…` : text;
}

function ending({ exitCode, signal, timedOut, oomKilled, durationMs }: ExecResult): string {
  if (timedOut) return `timed out after ${Math.round(durationMs)} ms`;
  if (oomKilled) return 'was killed because the sandbox ran out of memory';
  return signal === null ? `exited with code ${exitCode}` : `was killed by ${signal}`;
}

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-MAX_STDERR_LINES).join('\n').slice(-MAX_STDERR).toWellFormed();
}
