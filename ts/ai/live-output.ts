/**
 * Preliminary results of a call: the output of a command so far.
 *
 * Invariant: a command with much output makes neither many nor large results. There is one result per interval, with the end
 * of the output so far. The last result has all of it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ToolOutput, ToolResult } from '../tools/toolset';

const INTERVAL_MS = 100;
const MAX_CHARS = 16 * 1024;

/** A preliminary result; the next one replaces it. */
export interface RunningResult {
  [field: string]: unknown;
  status: 'running';
  /** The end of the output so far. */
  stdout: string;
  stderr: string;
}

/** Leaving the loop early aborts the call, and waits until the command is gone. */
export async function* liveResults(
  call: (signal: AbortSignal, onOutput: (output: ToolOutput) => void) => Promise<ToolResult>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ToolResult | RunningResult, undefined> {
  const stopped = new AbortController();
  const printed = { stdout: '', stderr: '' };
  let notify = () => {};
  let more = new Promise<undefined>((resolve) => {
    notify = () => resolve(undefined);
  });
  const result = call(signal ? AbortSignal.any([signal, stopped.signal]) : stopped.signal, ({ stream, text }) => {
    printed[stream] = (printed[stream] + text).slice(-MAX_CHARS);
    notify();
  });
  try {
    for (;;) {
      const done = await Promise.race([result, more]);
      if (done !== undefined) {
        yield done;
        return;
      }
      more = new Promise((resolve) => {
        notify = () => resolve(undefined);
      });
      yield { status: 'running', ...printed };
      await Promise.race([result, pause(INTERVAL_MS, undefined, { ref: false })]);
    }
  } finally {
    stopped.abort();
    await result.catch(() => {});
  }
}
