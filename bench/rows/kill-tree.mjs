// A command that runs out of time with children in the background and a daemon that left its session.

import assert from 'node:assert/strict';
import { summary } from '../measure.mjs';

const COMMAND = 'sleep 1000 & (setsid sleep 1000 &) ; sleep 1000';

export async function killTree({ ours }) {
  const sandbox = await ours.sandbox();
  const began = performance.now();
  const { timedOut } = await sandbox.exec(COMMAND, { timeoutMs: 300 });
  const took = performance.now() - began;
  assert.ok(timedOut, 'the command did not run out of time');
  const { stdout } = await sandbox.exec('cat /proc/[0-9]*/comm');
  const left = stdout.match(/^sleep$/gm)?.length ?? 0;
  await sandbox.close();
  return [
    { id: 'kill-tree', title: 'time-out of a tree after 300 ms', unit: 'ms', values: { cofferdam: summary([took]) } },
    {
      id: 'kill-tree-left',
      title: '  processes of it that are left',
      unit: '',
      values: { cofferdam: summary([left]) },
    },
  ];
}
