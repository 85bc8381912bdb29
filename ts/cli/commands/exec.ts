/**
 * `cofferdam exec`: a command in a sandbox, as if it ran here. What it prints comes byte by byte, and its exit code is ours.
 *
 * Invariant: unless it is detached, nothing of the command outlives this program; one that is killed leaves it to the guest,
 * which ends it soon after.
 */
import type { Process } from '../../process';
import type { Sandbox } from '../../sandbox';
import { command, EXIT, type Flags, type Given, UsageError } from '../command';
import { exitCodeOf, notStarted } from '../ended';
import { ENGINE, managerFrom } from '../engine';
import { findSandbox, SANDBOX_OPERAND } from '../find';
import { carry } from '../output';
import { pairs, time } from '../parse';
import { JSON_FLAG, print, printJson } from '../print';
import { Stopped, stopSignal, unlessStopped } from '../stop';

/** Of each stream, where the whole result is asked for. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** What shells say of a command whose reader went away. */
const CUT_OFF = 141;

const FLAGS = {
  stdin: { type: 'boolean', short: 'i', about: 'Give it our standard input; without, it has none' },
  cwd: { type: 'string', short: 'w', value: 'folder', about: 'Where it runs; the workdir unless told' },
  env: {
    type: 'string',
    short: 'e',
    multiple: true,
    value: 'NAME=value',
    about: 'A variable; NAME alone takes yours',
  },
  user: { type: 'string', short: 'u', value: 'uid[:gid]', about: 'As whom it runs: a number or a name in the image' },
  timeout: { type: 'string', short: 't', value: 'time', about: 'End it after so long: 90s, 30m; never unless told' },
  detach: { type: 'boolean', short: 'd', about: 'Leave it running and print its id, for cofferdam logs' },
  ...JSON_FLAG,
  ...ENGINE,
} as const satisfies Flags;

export const exec = command({
  name: 'exec',
  summary: 'Run a command in a sandbox',
  about: `Runs a command in a sandbox. What it prints comes as it is printed, byte by byte; its exit code is ours, 128+n when a
signal ended it. One word goes through the sandbox's shell; several are run as they are. Ctrl-C ends the command with
all that it started.`,
  operands: [SANDBOX_OPERAND],
  tail: { name: 'command', about: 'A line for the shell, or a program and its arguments', many: true },
  flags: FLAGS,
  examples: [
    {
      line: "cofferdam exec default 'ls -la | head'",
      about: 'A line for the shell, in the session "default" of yours',
    },
    { line: 'cofferdam exec sbx_1f0 python -m pytest -x', about: 'A program and its arguments' },
    { line: 'tar c src | cofferdam exec -i default tar x', about: 'Our standard input' },
    { line: 'cofferdam exec -d default python -m http.server', about: 'Leave it running' },
  ],
  async run({ flags, operands: [name = ''], tail }) {
    if (flags.detach && flags.stdin) throw new UsageError('--stdin is not for --detach: nobody stays to pass it on');
    const options = {
      cwd: flags.cwd,
      env: pairs('--env', flags.env),
      user: flags.user,
      timeoutMs: time('--timeout', flags.timeout) ?? 0,
      signal: stopSignal(),
    };
    const line = tail.length === 1 ? (tail[0] as string) : tail;
    const sandbox = await unlessStopped(findSandbox(managerFrom(flags), name), options.signal);
    try {
      if (flags.detach) return await detached(sandbox, line, options, flags);
      if (flags.json) return await whole(sandbox, line, options, flags);
      return await live(sandbox, line, options, flags);
    } catch (error) {
      return notStarted(error);
    }
  },
});

type Line = string | readonly string[];
type Options = { cwd?: string; env: Record<string, string>; user?: string; timeoutMs: number; signal: AbortSignal };

async function detached(sandbox: Sandbox, line: Line, options: Options, { json }: Given<typeof FLAGS>) {
  const started = await sandbox.spawn(line, { ...options, detached: true });
  await started.end();
  if (json) printJson({ execId: started.execId, pid: started.pid });
  else print(started.execId);
  return EXIT.ok;
}

async function whole(sandbox: Sandbox, line: Line, options: Options, { stdin, timeout }: Given<typeof FLAGS>) {
  const input = stdin ? { stdin: process.stdin } : {};
  const result = await sandbox.exec(line, { ...options, ...input, maxOutputBytes: MAX_OUTPUT_BYTES });
  printJson(result);
  return exitCodeOf(result, timeout);
}

async function live(sandbox: Sandbox, line: Line, options: Options, { stdin, timeout }: Given<typeof FLAGS>) {
  const { signal } = options;
  const started = await sandbox.spawn(line, options);
  try {
    const fed = stdin ? feed(started) : started.end();
    // What is left of our input when the command has ended is nobody's.
    fed.catch(() => {});
    await unlessStopped(carryAll(started), signal);
    return exitCodeOf(await unlessStopped(started.wait(), signal), timeout);
  } catch (error) {
    await started.kill().catch(() => {});
    if (error instanceof Stopped && error.signal === 'SIGPIPE') return CUT_OFF;
    throw error;
  }
}

async function carryAll(started: Process): Promise<void> {
  for await (const chunk of started) await carry(chunk);
}

async function feed(started: Process): Promise<void> {
  for await (const piece of process.stdin) await started.write(piece);
  await started.end();
}
