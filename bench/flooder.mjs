// The process whose sandbox prints without end while nobody reads: prints by how much it and the guest grew at the most,
// and how long a command takes before it and meanwhile.
//
//   node --expose-gc bench/flooder.mjs <labels as JSON> <stopped | unread> <ms>

import assert from 'node:assert/strict';
import { SandboxManager } from '../index.mjs';
import { guestFigures, hostFigures } from './figures.mjs';
import { summary, timed } from './measure.mjs';

const SAMPLE_MS = 200;
const WARM_UPS = 200;
const QUIET_MS = 2_000;

const READERS = {
  /** Takes one chunk and then no more, but does not leave either. */
  async stopped(process, over) {
    for await (const _ of process) await over;
  },
  async unread() {},
};

const [labels, reader, floodMs] = process.argv.slice(2);
const manager = new SandboxManager({
  defaults: { image: 'ubuntu:22.04', session: 'isolated', labels: JSON.parse(labels) },
});
try {
  const sandbox = await manager.open();
  for (let count = 0; count < WARM_UPS; count += 1) await runTrue(sandbox);
  const quiet = await commands(sandbox, QUIET_MS);
  const memory = await watch(sandbox);
  const flood = await sandbox.spawn('yes');
  const { promise: over, resolve: end } = withResolvers();
  const reading = READERS[reader](flood, over);
  const flooded = await commands(sandbox, Number(floodMs), memory.look);
  const peaks = memory.growth();
  await flood.kill();
  end();
  await reading;
  console.log(JSON.stringify({ quiet, flooded, ...peaks }));
} finally {
  await manager.close();
}

/** How long commands take, one after another, for so long. */
async function commands(sandbox, ms, between = async () => {}) {
  const samples = [];
  const ends = performance.now() + ms;
  while (performance.now() < ends) {
    samples.push(await timed(() => runTrue(sandbox)));
    await between();
  }
  return summary(samples);
}

async function runTrue(sandbox) {
  assert.equal((await sandbox.exec(['true'])).exitCode, 0);
}

async function watch(sandbox) {
  const start = { host: await hostFigures(), guest: await guestFigures(sandbox) };
  const peak = { host: 0, guest: 0 };
  let looked = performance.now();
  const look = async () => {
    if (performance.now() - looked < SAMPLE_MS) return;
    const now = { host: await hostFigures(), guest: await guestFigures(sandbox) };
    for (const side of Object.keys(peak)) {
      peak[side] = Math.max(peak[side], now[side].residentBytes - start[side].residentBytes);
    }
    looked = performance.now();
  };
  return { look, growth: () => ({ hostBytes: peak.host, guestBytes: peak.guest }) };
}

function withResolvers() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
