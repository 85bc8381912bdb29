/** Stopping a command by a signal. */
import { EXIT, say } from './command';

/** SIGPIPE: the reader of our output has read enough, and nothing failed. */
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143, SIGPIPE: EXIT.ok } as const;

/** Signals from people and programs; SIGPIPE stands for output that no one reads any more. */
const SENT = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const;

let stopping: AbortController | undefined;

/** The reason of a {@link stopSignal}; the exit code tells the signal, as in shells. */
export class Stopped extends Error {
  readonly exitCode: number;

  constructor(readonly signal: keyof typeof EXIT_CODES) {
    super(`stopped by ${signal}`);
    this.exitCode = EXIT_CODES[signal];
  }
}

/**
 * Aborts at the first SIGINT, SIGQUIT, SIGTERM or SIGHUP, and when no one reads our output any more: the command then
 * cleans up. A second SIGINT ends the program at once; its sandboxes end by their leases.
 */
export function stopSignal(): AbortSignal {
  if (stopping) return stopping.signal;
  const stop = new AbortController();
  stopping = stop;
  for (const name of SENT) {
    process.on(name, () => {
      if (name === 'SIGINT' && stop.signal.aborted) {
        say('interrupted again: not waiting for the cleanup');
        process.exit(EXIT.failed);
      }
      stop.abort(new Stopped(name));
    });
  }
  return stop.signal;
}

/** No one reads our output any more. A command that uses {@link stopSignal} gets time to clean up. */
export function outputClosed(): void {
  if (!stopping) process.exit(EXIT_CODES.SIGPIPE);
  stopping.abort(new Stopped('SIGPIPE'));
}

/** Waits for the promise, or rejects when the signal aborts. */
export async function unlessStopped<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let onAbort = () => {};
  const stopped = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, stopped]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
