/**
 * A call's result while it is still coming: what a command has printed so far.
 *
 * Invariant: a command that prints much does not become many results, nor large ones: there is one per interval, with the
 * end of what was printed. The whole is in the last one.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { ToolOutput, ToolResult } from '../tools/toolset';

const INTERVAL_MS = 100;
const MAX_CHARS = 16 * 1024;

/** A result that will be replaced by the next one. */
export interface RunningResult {
  [field: string]: unknown;
  status: 'running';
  /** The end of it. */
  stdout: string;
  stderr: string;
}

/** Who stops reading stops the call, and waits until nothing of it is left. */
export async function* liveResults(
  call: (signal: AbortSignal, onOutput: (output: ToolOutput) => void) => Promise<ToolResult>,
  signal: AbortSignal | undefined,
): AsyncGenerator<ToolResult | RunningResult, undefined> {
  const left = new AbortController();
  const printed = { stdout: '', stderr: '' };
  let tell = () => {};
  let news = new Promise<undefined>((resolve) => {
    tell = () => resolve(undefined);
  });
  const result = call(signal ? AbortSignal.any([signal, left.signal]) : left.signal, ({ stream, text }) => {
    printed[stream] = (printed[stream] + text).slice(-MAX_CHARS);
    tell();
  });
  try {
    for (;;) {
      const done = await Promise.race([result, news]);
      if (done !== undefined) {
        yield done;
        return;
      }
      news = new Promise((resolve) => {
        tell = () => resolve(undefined);
      });
      yield { status: 'running', ...printed };
      await Promise.race([result, pause(INTERVAL_MS, undefined, { ref: false })]);
    }
  } finally {
    left.abort();
    await result.catch(() => {});
  }
}
