/** Waiting for the next time, or until a command is asked to stop. */
import { setTimeout as sleep } from 'node:timers/promises';

/** False when it is time to stop. */
export async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
