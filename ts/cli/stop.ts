/** When a command is asked to stop. */
import { EXIT, say } from './command';

/** Whoever read our output has read enough: nothing failed. */
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143, SIGPIPE: EXIT.ok } as const;

/** The signals that people and programs send; SIGPIPE stands for output that nobody reads any more. */
const SENT = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM'] as const;

let stopping: AbortController | undefined;

/** The reason of a {@link stopSignal}: a program that ends for it says by which signal, as shells do. */
export class Stopped extends Error {
  readonly exitCode: number;

  constructor(readonly signal: keyof typeof EXIT_CODES) {
    super(`stopped by ${signal}`);
    this.exitCode = EXIT_CODES[signal];
  }
}

/**
 * Aborts at the first SIGINT, SIGQUIT, SIGTERM or SIGHUP, and when nobody reads our output any more: from then on the command ends
 * what it has open. A second SIGINT, by somebody who does not want to wait, ends the program at once, and leaves its
 * sandboxes to their own leases.
 */
export function stopSignal(): AbortSignal {
  if (stopping) return stopping.signal;
  const stop = new AbortController();
  stopping = stop;
  for (const name of SENT) {
    process.on(name, () => {
      if (name === 'SIGINT' && stop.signal.aborted) {
        say('not waiting for it to end');
        process.exit(EXIT.failed);
      }
      stop.abort(new Stopped(name));
    });
  }
  return stop.signal;
}

/** Nobody reads our output any more. A command that listens for its end is given time to end in order. */
export function outputClosed(): void {
  if (!stopping) process.exit(EXIT_CODES.SIGPIPE);
  stopping.abort(new Stopped('SIGPIPE'));
}

/** What comes first: the promise's end, or the signal's. */
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
