// From nothing to a container that answers (ours) or was started (the others). The image is there; removal is not timed.

import { compare } from '../measure.mjs';

const PLAN = { rounds: 10, settleMs: 250 };

const VARIANTS = [
  // The bare create and start that people write: it has the engine's default network, which ours has not.
  { id: 'cold-open', title: 'cold open', network: true },
  { id: 'cold-open-offline', title: 'cold open, nobody with network', network: false },
];

export async function coldOpen({ contestants, planned }) {
  const able = contestants.filter(({ open }) => open);
  const rows = [];
  for (const { id, title, network } of VARIANTS) {
    const sample = (contestant) => timedOpen(contestant, { network });
    rows.push({ id, title, unit: 'ms', values: await compare(able, sample, planned(PLAN)) });
  }
  return rows;
}

/** How long it took to open one, which is closed again after the clock has stopped. */
export async function timedOpen(contestant, options) {
  const began = performance.now();
  const close = await contestant.open(options);
  const took = performance.now() - began;
  await close();
  return took;
}
