// The process of one contestant that reads a long stdout: prints how long it took and by how much its resident memory
// grew at the most meanwhile.
//
//   node bench/stream-reader.mjs <contestant> <run id> <bytes>

import { contestant } from './contestants/index.mjs';
import { watchMemory } from './memory.mjs';

const [id, runId, wanted] = process.argv.slice(2);
const bytes = Number(wanted);
const reader = contestant(id, runId);
await reader.start();
try {
  await reader.exec(['/bin/true']);
  const memory = watchMemory();
  let received = 0;
  const began = performance.now();
  const exitCode = await reader.stream(['head', '-c', wanted, '/dev/zero'], (count) => {
    received += count;
    memory.look();
  });
  const ms = performance.now() - began;
  const growthBytes = memory.growth();
  if (exitCode !== 0) throw new Error(`head exited with ${exitCode}`);
  // The docker command writes to /dev/null: no byte of it passes through here.
  const passesThrough = id !== 'docker-cli';
  if (passesThrough && received !== bytes) throw new Error(`${received} bytes came of ${bytes}`);
  console.log(JSON.stringify({ ms, growthBytes: passesThrough ? growthBytes : null }));
} finally {
  await reader.stop();
}
