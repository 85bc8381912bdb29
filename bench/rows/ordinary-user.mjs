// What an ordinary user sees: every byte goes through the engine, because only root on the engine's machine has a direct link. In
// a fresh process with COFFERDAM_SHORTCUT=off, against dockerode in the same process.

import { fileURLToPath } from 'node:url';
import { output } from '../program.mjs';

const ORDINARY_USER = fileURLToPath(new URL('../ordinary-user.mjs', import.meta.url));

export async function ordinaryUser({ quick, runId }) {
  const args = [ORDINARY_USER, runId, quick ? 'quick' : 'whole'];
  const env = { ...process.env, COFFERDAM_SHORTCUT: 'off' };
  const rows = JSON.parse(await output(process.execPath, args, { env }));
  return rows.map((row) => ({ ...row, id: `ordinary-${row.id}`, title: `through the engine: ${row.title}` }));
}
