// Many sessions with keys of their own, all opened at once, against as many containers created and started at once.

import { compare } from '../measure.mjs';

const COUNT = 50;
const QUICK_COUNT = 10;

/** The engine takes its time to tidy up after so many. */
const PLAN = { rounds: 5, warmUps: 0, settleMs: 2_000 };

export async function keysAtOnce({ contestants, planned, quick }) {
  const count = quick ? QUICK_COUNT : COUNT;
  const able = contestants.filter(({ id }) => id === 'cofferdam' || id === 'dockerode');
  const sample = async (contestant) => {
    const began = performance.now();
    const opened = await Promise.allSettled(Array.from({ length: count }, () => contestant.open({ network: true })));
    const took = performance.now() - began;
    await Promise.all(opened.map(({ value: close }) => close?.()));
    const failed = opened.find(({ status }) => status === 'rejected');
    if (failed) throw failed.reason;
    return took;
  };
  const values = await compare(able, sample, planned(PLAN));
  return [{ id: 'keys-at-once', title: `${count} opens at once, of ${count} keys`, unit: 'ms', values }];
}
