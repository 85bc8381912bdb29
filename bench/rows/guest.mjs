// The weight of the guest: on disk, and resident as PID 1 of a sandbox that has done nothing yet.

import { statSync } from 'node:fs';
import { GUEST_BINARY } from '../guest-binary.mjs';
import { summary } from '../measure.mjs';

const SANDBOXES = 3;

export async function guest({ ours }) {
  const resident = [];
  for (let count = 0; count < SANDBOXES; count += 1) {
    const sandbox = await ours.sandbox();
    const { stdout } = await sandbox.exec(['grep', 'VmRSS', '/proc/1/status']);
    resident.push((Number(/(\d+) kB/.exec(stdout)[1]) * 1024) / 1e6);
    await sandbox.close();
  }
  const size = statSync(GUEST_BINARY).size / 1e6;
  return [
    { id: 'guest-size', title: 'guest on disk', unit: 'MB', values: { cofferdam: summary([size]) } },
    { id: 'guest-memory', title: 'guest resident, idle', unit: 'MB', values: { cofferdam: summary(resident) } },
  ];
}
