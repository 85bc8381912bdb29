// The process that comes to a session which another one has open: prints how long its `open()` took.
//
//   node bench/resumer.mjs <workflow> <image>

import assert from 'node:assert/strict';
import { SandboxManager } from '../index.mjs';

const [workflow, image] = process.argv.slice(2);
const manager = new SandboxManager();
try {
  // The engine is found and asked for its version before the clock runs: that is not what opening costs.
  await manager.info();
  const began = performance.now();
  const sandbox = await manager.open({ scope: { workflow }, image });
  const ms = performance.now() - began;
  assert.equal(sandbox.created, false, 'the session was not found');
  console.log(ms);
} finally {
  // Leaves the session as it is: another one made it.
  await manager.close();
}
