// A burst, as ComputeSDK's benchmark has it: many sandboxes opened at once, with one short command in each. How long until all
// have answered, how long for the one in the middle, and until the first is ready.

import assert from 'node:assert/strict';
import { compare, summary } from '../measure.mjs';
import { timedOpen } from './cold-open.mjs';

const COUNT = 100;

/** Before each burst, for comparison. */
const COLD_OPENS = 5;

/** The engine takes its time to tidy up after so many. */
const PLAN = { rounds: 3, warmUps: 0, settleMs: 2_000 };

export async function burst({ contestants, planned }) {
  const able = contestants.filter(({ sandbox }) => sandbox);
  const figures = new Map(able.map(({ id }) => [id, { medians: [], firsts: [], colds: [], right: [] }]));
  const sample = async (contestant) => {
    const { medians, firsts, colds, right } = figures.get(contestant.id);
    for (let count = 0; count < COLD_OPENS; count += 1) colds.push(await timedOpen(contestant, { network: false }));
    const { ready, answered } = await openAll(contestant);
    right.push(answered.length);
    firsts.push(Math.min(...ready));
    medians.push(summary(answered).p50);
    return Math.max(...answered);
  };
  const walls = await compare(able, sample, planned(PLAN));
  const each = (of) => Object.fromEntries([...figures].map(([id, taken]) => [id, of(taken, id)]));
  return [
    {
      id: 'burst',
      title: `${COUNT} opens with a command each, at once`,
      unit: 'ms',
      values: each(({ right }, id) => ({ ...walls[id], right: Math.min(...right) })),
    },
    { id: 'burst-median', title: '  until half have answered', unit: 'ms', values: each((of) => summary(of.medians)) },
    { id: 'burst-first', title: '  until the first is ready', unit: 'ms', values: each((of) => summary(of.firsts)) },
    { id: 'burst-cold', title: '  one cold open, before it', unit: 'ms', values: each((of) => summary(of.colds)) },
  ];
}

/** When each was ready and when each had answered rightly, counted from the start of all. */
async function openAll(contestant) {
  const began = performance.now();
  const opened = [];
  const ready = [];
  const answered = [];
  const one = async (index) => {
    const sandbox = await contestant.sandbox();
    opened.push(sandbox);
    ready.push(performance.now() - began);
    const { exitCode, stdout } = await sandbox.exec(['echo', `${index}`]);
    const took = performance.now() - began;
    assert.deepEqual({ exitCode, stdout }, { exitCode: 0, stdout: `${index}\n` });
    answered.push(took);
  };
  const ends = await Promise.allSettled(Array.from({ length: COUNT }, (_, index) => one(index)));
  await Promise.all(opened.map((sandbox) => sandbox.close()));
  const failed = ends.find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
  assert.equal(answered.length, COUNT);
  return { ready, answered };
}
