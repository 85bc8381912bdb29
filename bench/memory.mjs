// By how much this process grows at the most while something goes on.

import { readFileSync, writeFileSync } from 'node:fs';

const SAMPLE_MS = 10;

export function watchMemory() {
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
