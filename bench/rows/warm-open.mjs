// An open that the warm pool serves, against the create and start that it spares. The pool is full again before the next
// turn: filling it takes all that the engine has, and would slow down whoever is measured meanwhile.

import { SandboxManager } from '../../index.mjs';
import { atEnd } from '../../scripts/lifetime.mjs';
import { compare } from '../measure.mjs';
import { IMAGE, labelsOf } from '../ring.mjs';
import { timedOpen } from './cold-open.mjs';

const PLAN = { rounds: 20, settleMs: 250 };
const KEPT = 2;

const VARIANTS = [
  // Shared with other programs, so that the engine is asked for the name.
  {
    id: 'warm-open',
    title: 'open from the warm pool',
    which: () => ({ scope: { workflow: `bench-${Math.random()}` } }),
  },
  { id: 'warm-open-isolated', title: 'open from the warm pool, isolated', which: () => ({ session: 'isolated' }) },
];

export async function warmOpen({ contestants, planned, runId }) {
  const others = contestants.filter(({ id, open }) => open && id !== 'cofferdam');
  const manager = new SandboxManager({
    warm: { [IMAGE]: KEPT },
    defaults: { image: IMAGE, labels: labelsOf(runId) },
  });
  const forget = atEnd(() => manager.close());
  try {
    const events = manager.events();
    await full(events);
    const sample = (contestant) => timedOpen(contestant, { network: true });
    const rows = [];
    for (const { id, title, which } of VARIANTS) {
      const pooled = { id: 'cofferdam', open: () => openPooled(manager, which(), events) };
      rows.push({ id, title, unit: 'ms', values: await compare([pooled, ...others], sample, planned(PLAN)) });
    }
    return rows;
  } finally {
    await manager.close();
    forget();
  }
}

async function openPooled(manager, which, events) {
  const sandbox = await manager.open(which);
  return async () => {
    await sandbox.close();
    await full(events);
  };
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
