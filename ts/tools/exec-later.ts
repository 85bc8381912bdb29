/** `sandbox_exec_read` and `sandbox_exec_wait`: coming back to a command that was left running, or that said a lot. */
import { z } from 'zod';
import { SandboxError } from '../errors';
import { unlessAborted } from '../internal/abort';
import type { OutputChunk } from '../options';
import type { Process } from '../process';
import { defineTool, inSession, sessionAliases, type ToolCall } from './definition';
import { excerpt } from './excerpt';
import { ofCommand, seconds, toModel } from './exec';

const MAX_CHUNKS = 1_000;

/** How long `sandbox_exec_wait` waits unless told. */
const WAIT_MS = 60_000;

const execId = z.string().max(100).describe('From sandbox_exec');

export const execReadTool = defineTool({
  name: 'sandbox_exec_read',
  description:
    'Read the output of a command by its exec_id, also while it runs. To go on, call again with since_seq set to next_seq.',
  input: {
    exec_id: execId,
    since_seq: z
      .int()
      .min(0)
      .max(Number.MAX_SAFE_INTEGER)
      .optional()
      .describe('Only what came after this chunk; from the start unless told'),
    max_chunks: z.int().min(1).max(MAX_CHUNKS).optional(),
    wait_seconds: z.number().min(0).max(60).optional().describe('Wait up to so long for new output; 0 unless told'),
    ...inSession,
  },
  aliases: sessionAliases,
  output: {
    chunks: z.array(z.object({ seq: z.number(), stream: z.enum(['stdout', 'stderr']), text: z.string() })),
    next_seq: z.number(),
    done: z.boolean().describe('The command has ended, and this is all'),
    lost_bytes: z.number().describe('How much of the output is no longer kept'),
  },
  async run({ exec_id, since_seq = 0, max_chunks = MAX_CHUNKS, wait_seconds = 0, sandbox_id }, call) {
    const process = await processOf(call, sandbox_id, exec_id);
    const waitMs = wait_seconds * 1000;
    // Not held up by an abort: what is read late is thrown away.
    const read = await unlessAborted(process.read({ sinceSeq: since_seq, maxChunks: max_chunks, waitMs }), call.signal);
    const { chunks, isAll } = firstOf(read.chunks, call.maxBytes);
    const next = chunks.at(-1)?.seq ?? since_seq;
    const lost =
      read.lostBytes > 0 && `${read.lostBytes} bytes of output were not kept: it was more than is kept for reading.`;
    const more = !isAll && `There is more: read on with since_seq ${next}.`;
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
  description:
    'Wait until a command that was started with stream: true has ended, for up to timeout_seconds (60 unless told).',
  input: { exec_id: execId, timeout_seconds: seconds.optional(), ...inSession },
  aliases: sessionAliases,
  output: { done: z.boolean().describe('False if it still runs'), ...ofCommand },
  async run({ exec_id, timeout_seconds, sandbox_id }, call) {
    const process = await processOf(call, sandbox_id, exec_id);
    const timeoutMs = timeout_seconds === undefined ? WAIT_MS : timeout_seconds * 1000;
    try {
      const result = await process.wait({ timeoutMs, signal: call.signal });
      return { done: true, ...toModel(result, call.maxBytes) };
    } catch (error) {
      if (!(error instanceof SandboxError) || error.code !== 'TIMED_OUT') throw error;
      const note = 'It still runs. Wait again, or read what it printed with sandbox_exec_read.';
      return { done: false, exec_id, status: 'running', note };
    }
  },
});

/** Only in a sandbox in reach: an id of anybody else's command is of no command there. */
async function processOf({ sessions }: ToolCall, sandboxId: string | undefined, execId: string): Promise<Process> {
  const sandbox = await sessions.reachCommand(execId, sandboxId);
  if (sandbox === undefined) {
    throw new SandboxError('PROCESS_NOT_FOUND', 'the sandbox that it ran in is gone, or was never opened');
  }
  return sandbox.process(execId);
}

/** As many as fit a result; at least one, if only its head and tail. */
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
