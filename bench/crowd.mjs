// The process that opens many sandboxes at once: prints how long it took until all had answered, and how much memory each
// costs, by the kernel's own share of every page.
//
//   node --expose-gc bench/crowd.mjs <state folder> <sandboxes>

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxManager } from '../index.mjs';

/** After the last answer: allocators give back what starting took. */
const SETTLE_MS = 2_000;

const [state, wanted] = process.argv.slice(2);
const count = Number(wanted);
process.env.COFFERDAM_STATE = state;
const manager = new SandboxManager({ backend: 'namespaces', defaults: { image: 'host', session: 'isolated' } });
try {
  // The first one costs what all share.
  await (await manager.open()).close();
  await sleep(SETTLE_MS);
  const before = share('self');
  const began = performance.now();
  const answers = await Promise.all(Array.from({ length: count }, answered));
  const ms = performance.now() - began;
  const right = answers.filter((answer) => answer === 'here\n').length;
  assert.equal(right, count, `only ${right} of ${count} answered`);
  await sleep(SETTLE_MS);
  const hostBytes = (share('self') - before) / count;
  const processes = ofBoxes();
  assert.ok(processes.length >= 2 * count, `${processes.length} processes keep ${count} sandboxes`);
  const boxBytes = processes.reduce((sum, pid) => sum + share(pid), 0) / count;
  console.log(JSON.stringify({ ms, right, hostBytes, boxBytes }));
} finally {
  await manager.close();
}

async function answered() {
  const sandbox = await manager.open();
  return (await sandbox.exec(['echo', 'here'])).stdout;
}

/** What a process costs: its own pages, and its share of those that it has in common with others. */
function share(pid) {
  if (pid === 'self') globalThis.gc();
  const [, kib] = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
  return Number(kib) * 1024;
}

/** Those who keep our boxes, by their command lines, and all below them. */
function ofBoxes() {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const read = (pid, file) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, 'utf8');
    } catch {
      // It ended meanwhile.
      return '';
    }
  };
  const parent = (pid) => /^PPid:\s+(\d+)$/m.exec(read(pid, 'status'))?.[1];
  const found = new Set(all.filter((pid) => read(pid, 'cmdline').includes(state) && pid !== String(process.pid)));
  for (let size = 0; size !== found.size; ) {
    size = found.size;
    for (const pid of all) if (found.has(parent(pid))) found.add(pid);
  }
  return [...found];
}
