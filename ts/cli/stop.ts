/** When a command that runs on and on is asked to stop. */
import { EXIT, say } from './command';

/**
 * Aborts at the first SIGINT, SIGTERM or SIGHUP: from then on the command closes what it has open. A second SIGINT, by
 * somebody who does not want to wait, ends the program at once, and leaves its sandboxes to their own leases.
 */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (name === 'SIGINT' && stop.signal.aborted) {
        say('not waiting for sandboxes to close');
        process.exit(EXIT.failed);
      }
      stop.abort();
    });
  }
  return stop.signal;
}
