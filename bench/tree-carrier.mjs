// The process that carries trees into a sandbox and out again, or files to a store and back: prints by how much its resident
// memory grew at the most meanwhile.
//
//   node bench/tree-carrier.mjs <labels as JSON> tree <folder> <folder for the copy>
//   node bench/tree-carrier.mjs <labels as JSON> store <bytes> <store options as JSON>

import assert from 'node:assert/strict';
import { SandboxManager } from '../index.mjs';
import { timed } from './measure.mjs';
import { watchMemory } from './memory.mjs';
import { IMAGE } from './ring.mjs';

const [labels, what, first, second] = process.argv.slice(2);
const store = what === 'store' ? JSON.parse(second) : undefined;
const defaults = { image: IMAGE, session: 'isolated', labels: JSON.parse(labels) };
const manager = new SandboxManager({ defaults, store });
try {
  const sandbox = await manager.open();
  await sandbox.exec(['true']);
  console.log(JSON.stringify(await (store ? throughStore(sandbox) : throughSandbox(sandbox))));
} finally {
  await manager.close();
}

async function throughSandbox({ files }) {
  const memory = watchMemory();
  const ms = await timed(async () => {
    await files.upload(first, '/tree');
    await files.download('/tree', second);
  });
  return { ms, growthBytes: memory.growth() };
}

async function throughStore(sandbox) {
  await sandbox.exec(['sh', '-c', `head -c ${first} /dev/urandom > big`], { timeoutMs: 600_000 });
  const memory = watchMemory();
  const [published, staged] = [
    await timedResult(() => sandbox.publish('big', 'big')),
    await timedResult(() => sandbox.stage('big', 'back')),
  ];
  const growthBytes = memory.growth();
  assert.equal(published.result.sha256, staged.result.sha256);
  const sums = await sandbox.exec('sha256sum big back | cut -d " " -f 1', { timeoutMs: 600_000 });
  assert.equal(sums.stdout, `${published.result.sha256}\n`.repeat(2));
  return { publishMs: published.ms, stageMs: staged.ms, growthBytes };
}

async function timedResult(work) {
  let result;
  const ms = await timed(async () => {
    result = await work();
  });
  return { ms, result };
}
