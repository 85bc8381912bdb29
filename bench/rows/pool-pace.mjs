// A warm pool that keeps pace: sandboxes opened and closed one right after the other, faster than a small pool can be sure to
// refill, against as many cold opens.

import { compare, summary } from '../measure.mjs';
import { timedOpen } from './cold-open.mjs';

const OPENS = 30;
const PLAN = { rounds: 3, warmUps: 0, settleMs: 500 };

export async function poolPace({ contestants, planned }) {
  const ours = contestants.filter(({ withPool }) => withPool);
  const series = ours.flatMap((backend) => [
    { id: backend.id, samples: [], take: (into) => fromPool(backend, into) },
    { id: `${backend.id}, cold`, samples: [], take: (into) => backToBack(backend, into) },
  ]);
  const sample = async ({ samples, take }) => {
    await take(samples);
    return samples.length;
  };
  await compare(series, sample, planned(PLAN));
  const values = (id) => Object.fromEntries(ours.map((backend) => [backend.id, taken(series, id(backend.id))]));
  return [
    {
      id: 'pool-pace',
      title: `${OPENS} opens from a pool of 2, back to back`,
      unit: 'ms',
      values: values((id) => id),
    },
    { id: 'pool-pace-cold', title: '  cold, back to back', unit: 'ms', values: values((id) => `${id}, cold`) },
  ];
}

/** A new pool for each series: what refills after one must not run beside the next. */
function fromPool(backend, into) {
  return backend.withPool((manager) => {
    const open = async () => {
      const sandbox = await manager.open({ session: 'isolated' });
      return () => sandbox.close();
    };
    return backToBack({ open }, into);
  });
}

async function backToBack(from, into) {
  for (let count = 0; count < OPENS; count += 1) into.push(await timedOpen(from));
}

function taken(series, id) {
  return summary(series.find((one) => one.id === id).samples);
}
