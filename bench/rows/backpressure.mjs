// A program that prints without end while its reader has stopped, or while there is none: memory stays as it is, and
// other commands in the same sandbox go on.

import { fileURLToPath } from 'node:url';
import { summary } from '../measure.mjs';
import { output } from '../program.mjs';
import { labelsOf } from '../ring.mjs';

const FLOODER = fileURLToPath(new URL('../flooder.mjs', import.meta.url));
const FLOOD_MS = 10_000;
const QUICK_FLOOD_MS = 3_000;

const VARIANTS = [
  { reader: 'stopped', title: '`yes`, its reader stopped' },
  { reader: 'unread', title: '`yes`, nobody reads' },
];

export async function backpressure({ quick, runId }) {
  const rows = [];
  for (const { reader, title } of VARIANTS) {
    const ms = quick ? QUICK_FLOOD_MS : FLOOD_MS;
    const args = ['--expose-gc', FLOODER, JSON.stringify(labelsOf(runId)), reader, String(ms)];
    const { quiet, flooded, hostBytes, guestBytes } = JSON.parse(await output(process.execPath, args));
    const row = (id, title, unit, cofferdam) => ({ id: `${reader}-${id}`, title, unit, values: { cofferdam } });
    rows.push(
      row('memory', `${title}: memory more`, 'MB', summary([hostBytes / 1e6])),
      row('guest-memory', '  memory of the guest more', 'MB', summary([guestBytes / 1e6])),
      row('quiet', '  exec before it', 'ms', quiet),
      row('exec', '  exec meanwhile', 'ms', flooded),
    );
  }
  return rows;
}
