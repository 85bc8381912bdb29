// The process that runs one command after another: prints by how much it grew meanwhile, and its guest.
//
//   node --expose-gc bench/commander.mjs <labels as JSON> <commands>

import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxManager } from '../index.mjs';
import { growth, guestFigures, hostFigures } from './figures.mjs';

/** Before a good thousand of them V8 still compiles, and grows by 8 MB for that; the guest remembers the last 128. */
const WARM_UPS = 2_000;

/** After a command has told its result, the guest still clears up behind it. */
const SETTLE_MS = 500;

const [labels, commands] = process.argv.slice(2);
const manager = new SandboxManager({
  defaults: { image: 'ubuntu:22.04', session: 'isolated', labels: JSON.parse(labels) },
});
try {
  const sandbox = await manager.open();
  await run(sandbox, WARM_UPS);
  const guestBefore = await guestFigures(sandbox);
  const hostBefore = await hostFigures();
  await run(sandbox, Number(commands));
  const host = growth(hostBefore, await hostFigures());
  const guest = growth(guestBefore, await guestFigures(sandbox));
  console.log(JSON.stringify({ host, guest }));
} finally {
  await manager.close();
}

async function run(sandbox, count) {
  for (let done = 0; done < count; done += 1) assert.equal((await sandbox.exec(['true'])).exitCode, 0);
  await sleep(SETTLE_MS);
}
