// What a thousand commands leave behind, in a fresh Node process and in the guest.

import { fileURLToPath } from 'node:url';
import { summary } from '../measure.mjs';
import { output } from '../program.mjs';
import { labelsOf } from '../ring.mjs';

const COMMANDER = fileURLToPath(new URL('../commander.mjs', import.meta.url));
const COMMANDS = 1_000;

export async function manyCommands({ runId }) {
  const args = ['--expose-gc', COMMANDER, JSON.stringify(labelsOf(runId)), String(COMMANDS)];
  const { host, guest } = JSON.parse(await output(process.execPath, args));
  const row = (id, title, unit, value) => ({ id, title, unit, values: { cofferdam: summary([value]) } });
  return [
    row('many-memory', '1,000 execs in a row, memory more', 'MB', host.residentBytes / 1e6),
    row('many-descriptors', '  descriptors more', '', host.descriptors),
    row('many-guest-memory', '  memory of the guest more', 'MB', guest.residentBytes / 1e6),
    row('many-guest-descriptors', '  descriptors of the guest more', '', guest.descriptors),
    row('many-guest-processes', '  processes in the sandbox more', '', guest.processes),
  ];
}
