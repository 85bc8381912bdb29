// Places on the host's disk for the time of a row.

import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { atEnd } from '../scripts/lifetime.mjs';

/** A new folder for `work`, gone with it, and with a bench that is interrupted. */
export async function inFolder(name, work) {
  const folder = mkdtempSync(path.join(os.tmpdir(), `cofferdam-bench-${name}-`));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const forget = atEnd(remove);
  try {
    return await work(folder);
  } finally {
    forget();
    remove();
  }
}
