/** `sandbox_exec_read` and `sandbox_exec_wait`: return to a command that still runs, or whose output was shortened. */
import { z } from 'zod';
import { SandboxError } from '../errors';
import { unlessAborted } from '../internal/abort';
import type { OutputChunk } from '../options';
import type { Process } from '../process';
import { defineTool, inSession, sessionAliases, type ToolCall } from './definition';
import { excerpt } from './excerpt';
import { ofCommand, seconds, toModel } from './exec';
import { isGone } from './sessions';

const MAX_CHUNKS = 1_000;

/** How long `sandbox_exec_wait` waits by default. */
const WAIT_MS = 60_000;

const execId = z.string().max(100).describe('From sandbox_exec');

export const execReadTool = defineTool({
  name: 'sandbox_exec_read',
  description:
    'Read the output of a command by its exec_id, also while it runs. To continue, call again with since_seq set to next_seq.',
  input: {
    exec_id: execId,
    since_seq: z
      .int()
      .min(0)
      .max(Number.MAX_SAFE_INTEGER)
      .optional()
      .describe('Only output after this chunk (default: 0, from the start)'),
    max_chunks: z.int().min(1).max(MAX_CHUNKS).optional(),
    wait_seconds: z.number().min(0).max(60).optional().describe('How long to wait for new output (default: 0)'),
    ...inSession,
  },
  aliases: sessionAliases,
  output: {
    chunks: z.array(z.object({ seq: z.number(), stream: z.enum(['stdout', 'stderr']), text: z.string() })),
    next_seq: z.number(),
    done: z.boolean().describe('The command has ended and there is no more output'),
    lost_bytes: z.number().describe('Bytes of output that were dropped'),
  },
  async run({ exec_id, since_seq = 0, max_chunks = MAX_CHUNKS, wait_seconds = 0, sandbox_id }, call) {
    const process = await processOf(call, sandbox_id, exec_id);
    const waitMs = wait_seconds * 1000;
    // An abort does not wait for the read; its result is dropped.
    const read = await unlessAborted(process.read({ sinceSeq: since_seq, maxChunks: max_chunks, waitMs }), call.signal);
    const { chunks, isAll } = firstOf(read.chunks, call.maxBytes);
    const next = chunks.at(-1)?.seq ?? since_seq;
    const lost =
      read.lostBytes > 0 && `${read.lostBytes} bytes of output were dropped, because there was too much of it.`;
    const more = !isAll && `There is more output. Continue with since_seq ${next}.`;
    const note = [lost, more].filter((part) => part !== false).join(' ');
    return {
      chunks,
      next_seq: next,
      done: read.done && isAll,
      lost_bytes: read.lostBytes,
      ...(note && { note }),
    };
  },
});

export const execWaitTool = defineTool({
  name: 'sandbox_exec_wait',
  description: 'Wait for a command that was started with stream: true to end, for up to timeout_seconds (default: 60).',
  input: { exec_id: execId, timeout_seconds: seconds.optional(), ...inSession },
  aliases: sessionAliases,
  output: { done: z.boolean().describe('False if it is still running'), ...ofCommand },
  async run({ exec_id, timeout_seconds, sandbox_id }, call) {
    const process = await processOf(call, sandbox_id, exec_id);
    const timeoutMs = timeout_seconds === undefined ? WAIT_MS : timeout_seconds * 1000;
    try {
      const result = await process.wait({ timeoutMs, signal: call.signal });
      return { done: true, ...toModel(result, call.maxBytes) };
    } catch (error) {
      if (!(error instanceof SandboxError) || error.code !== 'TIMED_OUT') throw error;
      const note = 'It is still running. Wait again, or read its output with sandbox_exec_read.';
      return { done: false, exec_id, status: 'running', note };
    }
  },
});

/** Looks only in a sandbox that these tools can reach, where the id of somebody else's command is unknown. */
async function processOf({ sessions }: ToolCall, sandboxId: string | undefined, execId: string): Promise<Process> {
  const sandbox = await sessions.reachCommand(execId, sandboxId);
  try {
    if (sandbox) return await sandbox.process(execId);
  } catch (error) {
    if (sandbox === undefined || !isGone(error)) throw error;
    sessions.forget(sandbox);
  }
  throw new SandboxError('PROCESS_NOT_FOUND', 'the sandbox of this command is gone, or was never opened');
}

/** As many chunks as fit into a result. The first is shortened rather than left out. */
function firstOf(chunks: OutputChunk[], maxBytes: number) {
  const fitting: { seq: number; stream: OutputChunk['stream']; text: string }[] = [];
  let left = maxBytes;
  for (const { seq, stream, data, text } of chunks) {
    if (data.length > left && fitting.length > 0) return { chunks: fitting, isAll: false };
    fitting.push({ seq, stream, text: excerpt(text, maxBytes).text });
    left -= data.length;
  }
  return { chunks: fitting, isAll: true };
}
