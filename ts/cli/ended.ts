/** Converts the end of a command in a sandbox to our exit code, with a message for timeouts and lack of memory. */
import { SandboxError } from '../errors';
import type { ExecResult } from '../options';
import { say } from './command';

/** As in shells. */
const NOT_STARTED: Partial<Record<SandboxError['code'], number>> = { COMMAND_NOT_FOUND: 127, PERMISSION_DENIED: 126 };

export function exitCodeOf({ exitCode, timedOut, oomKilled }: ExecResult, timeout = 'its time limit'): number {
  if (timedOut) say(`timed out after ${timeout}`);
  if (oomKilled) say('killed: the sandbox ran out of memory (see --memory of cofferdam open and run)');
  return exitCode;
}

/** The exit code of a command that could not be started; rethrows any other error. */
export function notStarted(error: unknown): number {
  const code = error instanceof SandboxError ? NOT_STARTED[error.code] : undefined;
  if (code === undefined) throw error;
  say((error as SandboxError).message);
  return code;
}
