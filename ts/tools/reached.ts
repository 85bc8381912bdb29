/** What is the same in all calls that work in a sandbox: reach it, do it, and say when it is not the one it was. */
import type { Sandbox } from '../sandbox';
import type { ToolCall } from './definition';
import { toFailure } from './failure';
import type { Reached } from './sessions';

/** Does `work` in the sandbox with this id, or in the usual one. */
export async function inReached<T extends object>(
  { sessions, signal }: ToolCall,
  id: string | undefined,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<object> {
  const reached = await sessions.reach(id, signal);
  try {
    return withNote((await work(reached.sandbox)) as Record<string, unknown>, reached);
  } catch (error) {
    if (!reached.replaced) throw error;
    signal?.throwIfAborted();
    const failure = toFailure(error);
    return Object.assign(failure, { hint: [newness(reached), failure.hint].filter(Boolean).join(' ') });
  }
}

/** Says so when the sandbox is not the one it was. */
export function withNote(result: Record<string, unknown>, reached: Reached): object {
  if (!reached.replaced) return result;
  const note = [newness(reached), result.note].filter(Boolean).join(' ');
  return Object.assign(result, { created: true, sandbox_id: reached.sandbox.id, note });
}

function newness({ sandbox }: Reached): string {
  return `The sandbox before was gone, so this is a new one (${sandbox.id}): earlier files, installed programs and processes are not in it.`;
}
