// A session that is open already, opened once more: by the same manager, and by another process, which must link to the
// guest first, as `docker exec` does to start a command.

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { compare, timed } from '../measure.mjs';
import { output } from '../program.mjs';
import { IMAGE } from '../ring.mjs';
import { runTrue } from './at-once.mjs';

const RESUMER = fileURLToPath(new URL('../resumer.mjs', import.meta.url));
const HERE = { rounds: 20, warmUps: 3, turnMs: 50 };
const ELSEWHERE = { rounds: 20 };

export async function resume({ contestants, ours, planned, runId }) {
  const workflow = `bench-${runId}`;
  const open = () => ours.sandbox({ scope: { workflow }, session: 'default' });
  const held = await open();
  try {
    const here = () => timed(async () => assert.equal((await open()).created, false));
    const dockerode = contestants.find(({ id }) => id === 'dockerode');
    const elsewhere = async (contestant) =>
      contestant === ours
        ? Number(await output(process.execPath, [RESUMER, workflow, IMAGE]))
        : timed(() => runTrue(contestant));
    return [
      { id: 'resume', title: 'open once more', unit: 'ms', values: await compare([ours], here, planned(HERE)) },
      {
        id: 'resume-elsewhere',
        title: '  by another process, against an exec',
        unit: 'ms',
        values: await compare([ours, dockerode], elsewhere, planned(ELSEWHERE)),
      },
    ];
  } finally {
    await held.close();
  }
}
