// Many commands at once in one container.

import assert from 'node:assert/strict';
import { compare, inverted, timed } from '../measure.mjs';

const PLANS = [
  { count: 8, plan: { rounds: 8, turnMs: 300 } },
  { count: 64, plan: { rounds: 3, turnMs: 1000, settleMs: 500 } },
];

export async function atOnce({ contestants, planned }) {
  const rows = [];
  for (const { count, plan } of PLANS) {
    const sample = (contestant) => timed(() => Promise.all(Array.from({ length: count }, () => runTrue(contestant))));
    const values = await compare(contestants, sample, planned(plan));
    const rates = Object.entries(values).map(([id, wall]) => [id, inverted(wall, (ms) => (count * 1000) / ms)]);
    rows.push(
      { id: `at-once-${count}`, title: `${count} execs at once`, unit: 'ms', values },
      { id: `at-once-${count}-rate`, title: '  throughput', unit: 'exec/s', values: Object.fromEntries(rates) },
    );
  }
  return rows;
}

export async function runTrue(contestant) {
  const { exitCode } = await contestant.exec(['/bin/true']);
  assert.equal(exitCode, 0);
}
