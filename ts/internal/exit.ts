/**
 * Cleans up when a program exits without having closed its managers. Handles no signals: the sandboxes of a program that
 * is killed end by their leases.
 */
import type { NativeManager } from './binding';

/** How long an exit may be delayed: a local guest answers within a few milliseconds. */
const EXIT_TIMEOUT_MS = 500;

const open = new Set<NativeManager>();

function atExit(): void {
  for (const manager of open) manager.exit(EXIT_TIMEOUT_MS);
}

/** Ends, when the program exits, sandboxes that no one could find again. Returns a function that cancels this. */
export function endAtExit(manager: NativeManager): () => void {
  if (open.size === 0) process.on('exit', atExit);
  open.add(manager);
  return () => {
    open.delete(manager);
    if (open.size === 0) process.removeListener('exit', atExit);
  };
}
