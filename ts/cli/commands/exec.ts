/**
 * `cofferdam exec`: runs a command in a sandbox as if it ran here: exact output, same exit code.
 *
 * Invariant: unless it is detached, the command does not outlive this program. If this program is killed, the guest ends the
 * command soon after.
 */
import type { Process } from '../../process';
import type { Sandbox } from '../../sandbox';
import { command, EXIT, type Flags, type Given, UsageError } from '../command';
import { exitCodeOf, notStarted } from '../ended';
import { ENGINE, managerFrom } from '../engine';
import { findSandbox, SANDBOX_OPERAND } from '../find';
import { writeChunk } from '../output';
import { pairs, time } from '../parse';
import { JSON_FLAG, print, printJson } from '../print';
import { Stopped, stopSignal, unlessStopped } from '../stop';

/** Of each stream, with --json. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** As in shells: SIGPIPE. */
const READER_GONE = 141;

const FLAGS = {
  stdin: { type: 'boolean', short: 'i', about: 'Pass our standard input to it (default: none)' },
  cwd: { type: 'string', short: 'w', value: 'folder', about: 'Where it runs (default: the workdir)' },
  env: {
    type: 'string',
    short: 'e',
    multiple: true,
    value: 'NAME=value',
    about: 'Environment variable; NAME alone takes your value',
  },
  user: { type: 'string', short: 'u', value: 'uid[:gid]', about: 'Its user: a uid or a name in the image' },
  timeout: { type: 'string', short: 't', value: 'time', about: 'End it after this long: 90s, 30m (default: never)' },
  detach: { type: 'boolean', short: 'd', about: 'Leave it running and print its id, for cofferdam logs' },
  ...JSON_FLAG,
  ...ENGINE,
} as const satisfies Flags;

export const exec = command({
  name: 'exec',
  summary: 'Run a command in a sandbox',
  about: `Runs a command in a sandbox, prints its output as it arrives, and exits with its exit code, or with 128+n if a signal
ended it. A single word runs in the sandbox's shell; several run as they are. Ctrl-C ends the command with everything it
started.`,
  operands: [SANDBOX_OPERAND],
  tail: { name: 'command', about: 'A shell command, or a program and its arguments', many: true },
  flags: FLAGS,
  examples: [
    {
      line: "cofferdam exec default 'ls -la | head'",
      about: 'A shell command, in your session "default"',
    },
    { line: 'cofferdam exec sbx_1f0 python -m pytest -x', about: 'A program and its arguments' },
    { line: 'tar c src | cofferdam exec -i default tar x', about: 'With our standard input' },
    { line: 'cofferdam exec -d default python -m http.server', about: 'Leave it running' },
  ],
  async run({ flags, operands: [name = ''], tail }) {
    if (flags.detach && flags.stdin)
      throw new UsageError('--stdin is not for --detach: this program does not stay to pass it on');
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
    // Input that is left when the command ends is dropped.
    fed.catch(() => {});
    await unlessStopped(writeAll(started), signal);
    return exitCodeOf(await unlessStopped(started.wait(), signal), timeout);
  } catch (error) {
    await started.kill().catch(() => {});
    if (error instanceof Stopped && error.signal === 'SIGPIPE') return READER_GONE;
    throw error;
  }
}

async function writeAll(started: Process): Promise<void> {
  for await (const chunk of started) await writeChunk(chunk);
}

async function feed(started: Process): Promise<void> {
  for await (const piece of process.stdin) await started.write(piece);
  await started.end();
}
