// An open that the warm pool serves, against the create and start that it spares, and against our own cold open. The pool is
// full again before the next turn.

import { compare } from '../measure.mjs';
import { timedOpen } from './cold-open.mjs';

const PLAN = { rounds: 20, settleMs: 250 };

const VARIANTS = [
  // Shared with other programs, so that the backend is asked for the name.
  {
    id: 'warm-open',
    title: 'open from the warm pool',
    which: () => ({ session: 'default', scope: { workflow: `bench-${Math.random()}` } }),
  },
  { id: 'warm-open-isolated', title: 'open from the warm pool, isolated', which: () => ({ session: 'isolated' }) },
];

export async function warmOpen({ contestants, planned }) {
  const able = contestants.filter(({ open }) => open);
  const ours = able.filter(({ withPool }) => withPool);
  const others = able.filter(({ withPool }) => !withPool);
  const sample = (contestant) => timedOpen(contestant, { network: true });
  return withPools(ours, async (pools) => {
    const rows = [];
    for (const { id, title, which } of VARIANTS) {
      const pooled = pools.map((pool) => ({ id: pool.id, open: () => openPooled(pool, which()) }));
      rows.push({ id, title, unit: 'ms', values: await compare([...pooled, ...others], sample, planned(PLAN)) });
    }
    const values = await compare(ours, sample, planned(PLAN));
    rows.push({ id: 'warm-open-cold', title: '  cold open in the same run', unit: 'ms', values });
    return rows;
  });
}

/** A full pool for each, all at the same time. */
function withPools([first, ...rest], work, pools = []) {
  if (!first) return work(pools);
  return first.withPool((manager, full) => withPools(rest, work, [...pools, { id: first.id, manager, full }]));
}

async function openPooled({ manager, full }, which) {
  const sandbox = await manager.open(which);
  return async () => {
    await sandbox.close();
    await full();
  };
}
