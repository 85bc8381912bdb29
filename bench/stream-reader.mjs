// The process of one contestant that reads a long stdout: prints how long it took and by how much its resident memory
// grew at the most meanwhile.
//
//   node bench/stream-reader.mjs <contestant> <run id> <bytes>

import { readFileSync, writeFileSync } from 'node:fs';
import { contestant } from './contestants/index.mjs';

const SAMPLE_MS = 10;

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

function watchMemory() {
  const kernelCounts = resetKernelPeak();
  const start = process.memoryUsage.rss();
  let peak = start;
  let looked = 0;
  const look = () => {
    const now = performance.now();
    if (now - looked < SAMPLE_MS) return;
    looked = now;
    peak = Math.max(peak, process.memoryUsage.rss());
  };
  const timer = setInterval(look, SAMPLE_MS);
  const growth = () => {
    clearInterval(timer);
    return Math.max(peak, kernelCounts ? kernelPeak() : 0) - start;
  };
  return { look, growth };
}

/** Linux keeps the exact peak, and lets us start it anew; elsewhere the samples must do. */
function resetKernelPeak() {
  try {
    writeFileSync('/proc/self/clear_refs', '5');
    return true;
  } catch {
    return false;
  }
}

function kernelPeak() {
  const [, kib] = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'));
  return Number(kib) * 1024;
}
