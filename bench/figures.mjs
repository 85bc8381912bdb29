// What a process of ours holds: on the host the Node process itself, in a sandbox the guest, by its own /proc.

import { readdirSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

/**
 * @typedef {object} Figures
 * @property {number} residentBytes
 * @property {number} descriptors
 * @property {number} [processes] in the sandbox, the guest with them
 */

/** Needs --expose-gc: what is merely not collected yet is no growth. Twice, because native memory is given back between. */
export async function hostFigures() {
  globalThis.gc();
  await setImmediate();
  globalThis.gc();
  return { residentBytes: process.memoryUsage.rss(), descriptors: readdirSync('/proc/self/fd').length };
}

export async function guestFigures({ files }) {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(await files.readText('/proc/1/status'));
  const descriptors = await files.list('/proc/1/fd');
  const everything = await files.list('/proc');
  return {
    residentBytes: Number(kib) * 1024,
    descriptors: descriptors.length,
    processes: everything.filter(({ name }) => /^\d+$/.test(name)).length,
  };
}

/** By how much each figure rose. */
export function growth(before, after) {
  return Object.fromEntries(Object.keys(before).map((name) => [name, after[name] - before[name]]));
}
