// An open that the warm pool serves, against the create and start that it spares. The pool is full again before the next
// turn.

import { compare } from '../measure.mjs';
import { withPool } from '../pool.mjs';
import { IMAGE } from '../ring.mjs';
import { timedOpen } from './cold-open.mjs';

const PLAN = { rounds: 20, settleMs: 250 };

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
  return withPool(runId, IMAGE, async (manager, full) => {
    const sample = (contestant) => timedOpen(contestant, { network: true });
    const rows = [];
    for (const { id, title, which } of VARIANTS) {
      const pooled = { id: 'cofferdam', open: () => openPooled(manager, which(), full) };
      rows.push({ id, title, unit: 'ms', values: await compare([pooled, ...others], sample, planned(PLAN)) });
    }
    return rows;
  });
}

async function openPooled(manager, which, full) {
  const sandbox = await manager.open(which);
  return async () => {
    await sandbox.close();
    await full();
  };
}
