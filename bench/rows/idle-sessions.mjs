// What a session costs its host while nothing happens in it, in a fresh Node process that does nothing else.

import { fileURLToPath } from 'node:url';
import { summary } from '../measure.mjs';
import { output } from '../program.mjs';
import { labelsOf } from '../ring.mjs';

const IDLER = fileURLToPath(new URL('../idler.mjs', import.meta.url));
const PLAN = { sessions: 100, idleMs: 10_000 };
/** Not fewer: what the first session costs a process is counted in, and shared by all. */
const QUICK_PLAN = { sessions: 50, idleMs: 2_000 };

export async function idleSessions({ quick, runId }) {
  const { sessions, idleMs } = quick ? QUICK_PLAN : PLAN;
  // As they are, because `ring.mjs` brings dockerode with it, whose weight would hide ours.
  const args = ['--expose-gc', IDLER, JSON.stringify(labelsOf(runId)), String(sessions), String(idleMs)];
  const { bytesEach, cpuPercent, cpuPercentBefore } = JSON.parse(await output(process.execPath, args));
  const row = (id, title, unit, value) => ({ id, title, unit, values: { cofferdam: summary([value]) } });
  return [
    row('idle-memory', `${sessions} idle sessions, memory each`, 'KB', bytesEach / 1000),
    row('idle-cpu', '  CPU of all, of one core', '%', cpuPercent),
    row('idle-cpu-without', '  CPU without any session', '%', cpuPercentBefore),
  ];
}
