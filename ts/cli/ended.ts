/** How a command in a sandbox ended: as our own exit code, with a word on what the code does not say. */
import { SandboxError } from '../errors';
import type { ExecResult } from '../options';
import { say } from './command';

/** As shells say it. */
const NOT_STARTED: Partial<Record<SandboxError['code'], number>> = { COMMAND_NOT_FOUND: 127, PERMISSION_DENIED: 126 };

export function exitCodeOf({ exitCode, timedOut, oomKilled }: ExecResult, timeout = 'its time limit'): number {
  if (timedOut) say(`timed out after ${timeout}`);
  if (oomKilled) say('killed: the sandbox ran out of memory (see --memory of cofferdam open and run)');
  return exitCode;
}

/** The exit code of a command that could not be started; any other error goes on. */
export function notStarted(error: unknown): number {
  const code = error instanceof SandboxError ? NOT_STARTED[error.code] : undefined;
  if (code === undefined) throw error;
  say((error as SandboxError).message);
  return code;
}
