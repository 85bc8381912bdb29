/** `sandbox_exec`: a command, run to its end or left running. */
import { z } from 'zod';
import type { ExecResult } from '../options';
import type { Sandbox } from '../sandbox';
import { defineTool, inSession, sessionAliases, type ToolCall } from './definition';
import { excerpt } from './excerpt';
import { HintedError } from './failure';
import { inReached } from './reached';

/** Retained output of each stream in the sandbox, for `sandbox_exec_read`. */
const RETAINED_BYTES = 1024 * 1024;

const MAX_SECONDS = 24 * 60 * 60;

/** The result of a command for a model, also of one that is waited for later. */
export const ofCommand = {
  exec_id: z.string(),
  status: z.enum(['completed', 'running']),
  exit_code: z.int().min(0).max(255),
  stdout: z.string(),
  stderr: z.string(),
  duration_ms: z.number(),
  timed_out: z.boolean(),
  oom_killed: z.boolean(),
  truncated: z.boolean().describe('Whether the middle of stdout or stderr is missing'),
};

export const seconds = z.number().positive().max(MAX_SECONDS);

export const execTool = defineTool({
  name: 'sandbox_exec',
  description:
    'Run a command in the sandbox. A string runs in the shell (pipes, && and so on work); a list of words runs directly, without a shell. ' +
    'A command that fails returns its exit_code. Long output is shortened to its start and end. ' +
    'For servers and other long-running commands set stream to true, and poll with sandbox_exec_read or sandbox_exec_wait.',
  input: {
    command: z
      .union([z.string(), z.array(z.string())], { error: 'expected a string or a list of strings' })
      .optional()
      .describe('Required. For example "pip install pandas && python main.py", or ["python", "main.py"]'),
    cwd: z.string().optional().describe('Where to run it (default: the working directory)'),
    env: z.record(z.string(), z.string()).optional().describe('Environment variables for this command'),
    timeout_seconds: seconds
      .optional()
      .describe(
        'When this time is over, the command and all processes it started are killed. Leave out for the default',
      ),
    stream: z.boolean().optional().describe('Return an exec_id at once, and leave the command running'),
    ...inSession,
  },
  aliases: { cmd: 'command', workdir: 'cwd', ...sessionAliases },
  output: { ...ofCommand, created: z.boolean() },
  async run(input, call) {
    const { command } = input;
    if (command === undefined || command.length === 0) {
      const hint = 'Pass the command as a string for the shell, or as a list of words.';
      throw new HintedError('INVALID_ARGUMENT', 'command: required, and not empty', hint);
    }
    const timeoutMs =
      input.timeout_seconds === undefined ? call.context.commandTimeoutMs : input.timeout_seconds * 1000;
    const { cwd, env } = input;
    return inReached(call, input.sandbox_id, async (sandbox) => {
      if (input.stream) return start(sandbox, command, { cwd, env, timeoutMs: toMs(input.timeout_seconds) }, call);
      const result = await sandbox.exec(command, {
        cwd,
        env,
        ...(timeoutMs !== undefined && { timeoutMs }),
        maxOutputBytes: Math.max(RETAINED_BYTES, call.maxBytes),
        signal: call.signal,
        ...listeners(call.onOutput),
      });
      call.sessions.started(result.execId, sandbox);
      return toModel(result, call.maxBytes);
    });
  },
});

async function start(
  sandbox: Sandbox,
  command: string | string[],
  options: { cwd?: string; env?: Record<string, string>; timeoutMs?: number },
  { sessions, signal, maxBytes }: ToolCall,
): Promise<object> {
  // It outlives this call and this program, and ends with the session.
  const process = await sandbox.spawn(command, {
    ...options,
    detached: true,
    maxOutputBytes: Math.max(RETAINED_BYTES, maxBytes),
  });
  if (signal?.aborted) {
    await process.kill();
    throw signal.reason;
  }
  sessions.started(process.execId, sandbox);
  // Not waited for: it may have ended already.
  process.end().catch(() => {});
  return { exec_id: process.execId, status: 'running' };
}

function toMs(value: number | undefined): number | undefined {
  return value === undefined ? undefined : value * 1000;
}

/** A callback that throws is not called again. The command goes on. */
export function listeners(onOutput: ToolCall['onOutput']) {
  if (onOutput === undefined) return {};
  let hears = true;
  const tell = (stream: 'stdout' | 'stderr') => (text: string) => {
    if (!hears) return;
    try {
      onOutput({ stream, text });
    } catch {
      hears = false;
    }
  };
  return { onStdout: tell('stdout'), onStderr: tell('stderr') };
}

/** The result for a model, with its output shortened. */
export function toModel(result: ExecResult, maxBytes: number): Record<string, unknown> {
  const stdout = excerpt(result.stdout, maxBytes);
  const stderr = excerpt(result.stderr, maxBytes);
  const isLost = result.truncated.stdout || result.truncated.stderr;
  const truncated = isLost || stdout.truncated || stderr.truncated;
  const notes = [
    result.timedOut &&
      'It ran out of time and was killed, with all processes it started. For long-running commands set timeout_seconds or stream.',
    result.oomKilled && 'It was killed because the sandbox ran out of memory.',
    truncated && howToReadOn(result.execId, isLost),
  ].filter((note) => note !== false);
  return {
    exec_id: result.execId,
    status: 'completed',
    exit_code: result.exitCode,
    stdout: stdout.text,
    stderr: stderr.text,
    duration_ms: result.durationMs,
    timed_out: result.timedOut,
    oom_killed: result.oomKilled,
    truncated,
    ...(notes.length > 0 && { note: notes.join(' ') }),
  };
}

function howToReadOn(execId: string, isLost: boolean): string {
  return isLost
    ? 'The middle of the output was dropped. To get all of it, run the command again with its output in a file, and read that in parts.'
    : `The middle of the output is left out here. Read it with sandbox_exec_read, exec_id ${execId}, or run the command again through grep, head or tail.`;
}
