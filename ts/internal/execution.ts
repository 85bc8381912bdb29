/**
 * A command whose output is given to callbacks while it runs: one request to the guest, whose end is the result.
 *
 * Invariant: a slow callback slows the command, and nothing piles up.
 */
import type { ExecOptions } from '../options';
import type { NativeCommand, NativeExecResult, NativeSandbox } from './binding';
import { abortable, type CallSite } from './call';

/** Enough to fill a window, so that a fast stream costs few promises. */
const BATCH = 32;

/** A callback that throws or rejects ends the command: nobody is left to hear it. */
export async function execStreaming(
  site: CallSite,
  native: NativeSandbox,
  toCommand: () => { command: NativeCommand; stdin: Uint8Array | undefined },
  { onStdout, onStderr, signal }: Pick<ExecOptions, 'onStdout' | 'onStderr' | 'signal'>,
): Promise<NativeExecResult> {
  let thrown: { error: unknown } | undefined;
  const result = await abortable(site, signal, async (cancel) => {
    const { command, stdin } = toCommand();
    const execution = native.execStreaming(command, stdin, cancel);
    for (;;) {
      const chunks = await execution.nextMany(BATCH);
      if (chunks.length === 0) return execution.result();
      try {
        for (const { isStderr, data } of chunks) await (isStderr ? onStderr : onStdout)?.(data.toString('utf8'));
      } catch (error) {
        thrown = { error };
        await execution.kill();
        return undefined;
      }
    }
  });
  if (result === undefined) throw signal?.aborted ? signal.reason : thrown?.error;
  return result;
}
