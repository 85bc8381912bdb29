// One command at a time.

import assert from 'node:assert/strict';
import { compare, timed } from '../measure.mjs';

const PLAN = { rounds: 40, warmUps: 3, turnMs: 100 };

export async function exec({ contestants, planned }) {
  const sample = (contestant) => timed(async () => assert.equal((await contestant.exec(['/bin/true'])).exitCode, 0));
  return [
    { id: 'exec', title: 'exec /bin/true', unit: 'ms', values: await compare(contestants, sample, planned(PLAN)) },
  ];
}

export async function echo({ contestants, planned }) {
  const sample = (contestant) =>
    timed(async () => {
      const { exitCode, stdout } = await contestant.exec(['sh', '-c', 'echo hi']);
      assert.deepEqual({ exitCode, stdout }, { exitCode: 0, stdout: 'hi\n' });
    });
  const values = await compare(contestants, sample, planned(PLAN));
  return [{ id: 'echo', title: "exec sh -c 'echo hi'", unit: 'ms', values }];
}
