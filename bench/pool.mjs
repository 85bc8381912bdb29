// A manager whose pool is known to be full. Filling it takes all that the engine has, and would slow down whoever is
// measured meanwhile.

import { SandboxManager } from '../index.mjs';
import { atEnd } from '../scripts/lifetime.mjs';
import { labelsOf } from './ring.mjs';

const KEPT = 2;

/**
 * @template T
 * @param {{ runId: string, image: string, backend?: string }} options
 * @param {(manager: SandboxManager, full: () => Promise<void>) => Promise<T>} work `full` resolves when what was taken
 *   last is replaced
 */
export async function withPool({ runId, image, backend = 'docker' }, work) {
  const defaults = { image, labels: labelsOf(runId) };
  const manager = new SandboxManager({ backend, warm: { [image]: KEPT }, defaults });
  const forget = atEnd(() => manager.close());
  try {
    const events = manager.events();
    await full(events);
    return await work(manager, () => full(events));
  } finally {
    await manager.close();
    forget();
  }
}

/**
 * Not by `list({ state: 'warm' })`: the engine lists one before its guest has answered, and those of other programs too.
 */
async function full(events) {
  for (;;) {
    const { value, done } = await events.next();
    if (done) throw new Error('the manager was closed before its pool was full');
    if (value.type !== 'warming') continue;
    if (value.error) throw new Error(`the pool could not be filled: ${value.error}`);
    if (value.ready === KEPT) return;
  }
}
