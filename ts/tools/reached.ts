/**
 * Runs a call in its sandbox, and says when that sandbox is a new one.
 *
 * Invariant: nothing is done twice. A call goes to a known sandbox without checking first that it is alive. If the sandbox is
 * gone, the call is made again in a new one only when the core says that nothing of it was sent. A call that may have had an
 * effect fails, and the next call opens the new sandbox.
 */
import type { SandboxError } from '../errors';
import type { Sandbox } from '../sandbox';
import type { ToolCall } from './definition';
import { toFailure } from './failure';
import { isGone, type Reached } from './sessions';

/** Runs `work` in the sandbox with this id, or in the usual one. */
export async function inReached<T extends object>(
  call: ToolCall,
  id: string | undefined,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<object> {
  const { sessions, signal } = call;
  const reached = await sessions.reach(id, signal);
  try {
    return await workIn(reached, call, work);
  } catch (error) {
    if (!isGone(error)) throw error;
    signal?.throwIfAborted();
    if (reached.created || (error as SandboxError).details?.sent !== false) {
      sessions.forget(reached.sandbox);
      throw error;
    }
    return workIn(await sessions.reachInstead(reached.sandbox, signal), call, work);
  }
}

async function workIn<T extends object>(
  reached: Reached,
  { sessions, signal }: ToolCall,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<object> {
  try {
    return withNote((await work(reached.sandbox)) as Record<string, unknown>, reached);
  } catch (error) {
    if (!reached.replaced) throw error;
    signal?.throwIfAborted();
    if (isGone(error)) sessions.forget(reached.sandbox);
    const failure = toFailure(error);
    return Object.assign(failure, { hint: [newness(reached), failure.hint].filter(Boolean).join(' ') });
  }
}

/** Adds a note when the sandbox is a new one. */
export function withNote(result: Record<string, unknown>, reached: Reached): object {
  if (!reached.replaced) return result;
  const note = [newness(reached), result.note].filter(Boolean).join(' ');
  return Object.assign(result, { created: true, sandbox_id: reached.sandbox.id, note });
}

function newness({ sandbox }: Reached): string {
  return `The previous sandbox is gone, and this is a new one (${sandbox.id}): it does not have the earlier files, installed programs and processes.`;
}
