/**
 * What is left to do when a program exits without having closed its managers. No signal is handled here: a program that
 * is killed leaves its sandboxes to their own leases.
 */
import type { NativeManager } from './binding';

/** How long an exit may be held up: a local guest answers within a few milliseconds. */
const PATIENCE_MS = 500;

const open = new Set<NativeManager>();

function atExit(): void {
  for (const manager of open) manager.exit(PATIENCE_MS);
}

/** Ends, when the program exits, what nobody could find again. Gives what forgets it. */
export function endAtExit(manager: NativeManager): () => void {
  if (open.size === 0) process.on('exit', atExit);
  open.add(manager);
  return () => {
    open.delete(manager);
    if (open.size === 0) process.removeListener('exit', atExit);
  };
}
