// Files of random bytes, in and out. What was written is read back and compared once per contestant, before the clock runs.

import assert from 'node:assert/strict';
import { randomFillSync } from 'node:crypto';
import { compare, timed } from '../measure.mjs';

const SIZES = [
  { id: '1k', title: '1 KB', bytes: 1_000, plan: { rounds: 30, warmUps: 2, turnMs: 100 } },
  { id: '1m', title: '1 MB', bytes: 1_000_000, plan: { rounds: 15, turnMs: 100 } },
  { id: '100m', title: '100 MB', bytes: 100_000_000, plan: { rounds: 5 } },
];

export async function files({ contestants, planned }) {
  const rows = [];
  for (const { id, title, bytes, plan } of SIZES) {
    const name = `${id}.bin`;
    const content = randomBytes(bytes);
    for (const contestant of contestants) await verify(contestant, name, content);

    const write = (contestant) => timed(() => contestant.write(name, content));
    const read = (contestant) => timed(() => contestant.read(name, bytes));
    const row = async (verb, sample) => ({
      id: `${verb}-${id}`,
      title: `${verb} ${title}`,
      unit: 'ms',
      values: await compare(contestants, sample, planned(plan)),
    });
    rows.push(await row('write', write), await row('read', read));
  }
  return rows;
}

async function verify(contestant, name, content) {
  await contestant.stage?.(name, content);
  await contestant.write(name, content);
  const back = await contestant.read(name, content.length);
  const bytes = contestant.fetched ? await contestant.fetched(name) : back;
  assert.ok(content.equals(bytes), `${contestant.id}: "${name}" came back different`);
}

export function randomBytes(count) {
  return randomFillSync(Buffer.allocUnsafe(count));
}
