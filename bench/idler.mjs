// The process that holds sessions and does nothing: prints by how much each of them made it grow, and the CPU time it
// takes without them and with them.
//
//   node --expose-gc bench/idler.mjs <labels as JSON> <sessions> <ms>

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxManager } from '../index.mjs';

const AT_ONCE = 10;

/** After the last open: the manager still cleans up behind dead programs, once. */
const SETTLE_MS = 2_000;

const [labels, sessions, idleMs] = process.argv.slice(2);
const manager = new SandboxManager({
  defaults: { image: 'alpine:3.19', session: 'isolated', labels: JSON.parse(labels) },
});
try {
  await manager.info();
  await sleep(SETTLE_MS);
  const cpuPercentBefore = await cpuPercent();
  const residentBefore = resident();
  const held = await open(Number(sessions));
  await sleep(SETTLE_MS);
  const bytesEach = (resident() - residentBefore) / held.length;
  assert.ok(bytesEach > 0, 'the process shrank: the kernel took pages from it meanwhile');
  console.log(JSON.stringify({ bytesEach, cpuPercent: await cpuPercent(), cpuPercentBefore }));
} finally {
  await manager.close();
}

async function open(count) {
  const held = [];
  let left = count;
  const opener = async () => {
    while (left > 0) {
      left -= 1;
      held.push(await manager.open());
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, opener));
  return held;
}

function resident() {
  globalThis.gc();
  return process.memoryUsage.rss();
}

async function cpuPercent() {
  const before = process.cpuUsage();
  const began = performance.now();
  await sleep(Number(idleMs));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 10 / (performance.now() - began);
}
