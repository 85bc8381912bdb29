// Many sandboxes of namespaces, opened at once by a fresh Node process: until all have answered, and what each of them costs
// the machine while nothing happens in it.

import { fileURLToPath } from 'node:url';
import { summary } from '../measure.mjs';
import { output } from '../program.mjs';
import { inFolder } from '../scratch.mjs';

const CROWD = fileURLToPath(new URL('../crowd.mjs', import.meta.url));

const COUNT = 100;

export async function crowd({ contestants }) {
  if (!contestants.some(({ id }) => id === 'namespaces')) return [];
  // A place of its own, by which its processes are told from everybody else's.
  return inFolder('crowd', async (state) => {
    const args = ['--expose-gc', CROWD, state, String(COUNT)];
    const { ms, right, hostBytes, boxBytes } = JSON.parse(await output(process.execPath, args));
    const row = (id, title, unit, value) => ({ id, title, unit, values: { namespaces: summary([value]) } });
    const crowded = row('crowd', `${COUNT} sandboxes at once, all answer`, 'ms', ms);
    return [
      { ...crowded, values: { namespaces: { ...crowded.values.namespaces, right } } },
      row('crowd-memory', '  memory each, idle, all told', 'MB', (hostBytes + boxBytes) / 1e6),
      row('crowd-host-memory', '    of it in the Node process', 'MB', hostBytes / 1e6),
    ];
  });
}
