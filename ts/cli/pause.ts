/** Waits between two polls. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves with false when the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
