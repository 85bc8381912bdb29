// A directory of 1,000 files, with what `ls -l` tells of each.

import assert from 'node:assert/strict';
import { compare, timed } from '../measure.mjs';
import { PLACE } from '../ring.mjs';

const COUNT = 1_000;

export async function listing({ contestants, planned }) {
  for (const contestant of contestants) {
    const folder = `${contestant.place ?? PLACE}/many`;
    const script = `mkdir -p ${folder} && cd ${folder} && seq -f 'file-%04.0f.txt' ${COUNT} | xargs touch`;
    const { exitCode, stderr } = await contestant.exec(['sh', '-c', script]);
    assert.equal(exitCode, 0, `${contestant.id}: ${stderr}`);
  }
  const sample = (contestant) => timed(async () => assert.equal(await contestant.list('many'), COUNT));
  const values = await compare(contestants, sample, planned({ rounds: 15, warmUps: 2, turnMs: 100 }));
  return [{ id: 'list', title: 'list 1,000 files', unit: 'ms', values }];
}
