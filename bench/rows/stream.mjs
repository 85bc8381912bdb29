// A long stdout through `for await`. Each contestant reads in a fresh Node process, whose resident memory is its own.

import { fileURLToPath } from 'node:url';
import { compare, inverted, summary } from '../measure.mjs';
import { output } from '../program.mjs';

const READER = fileURLToPath(new URL('../stream-reader.mjs', import.meta.url));
const GIB = 1024 ** 3;
const QUICK_BYTES = 128 * 1024 ** 2;

export async function stream({ contestants, planned, quick, runId }) {
  const bytes = quick ? QUICK_BYTES : GIB;
  const growths = new Map();
  const sample = async ({ id }) => {
    const { ms, growthBytes } = JSON.parse(await output(process.execPath, [READER, id, runId, String(bytes)]));
    if (growthBytes !== null) growths.set(id, [...(growths.get(id) ?? []), growthBytes / 1024 ** 2]);
    return ms;
  };
  const values = await compare(contestants, sample, { ...planned({ rounds: 3 }), warmUps: 0 });
  const rates = Object.entries(values).map(([id, wall]) => [id, inverted(wall, (ms) => bytes / 1000 / ms)]);
  const growth = [...growths].map(([id, samples]) => [id, summary(samples)]);
  const size = bytes === GIB ? '1 GiB' : `${bytes / 1024 ** 2} MiB`;
  return [
    { id: 'stream', title: `stream ${size} of stdout`, unit: 'ms', values },
    { id: 'stream-rate', title: '  throughput', unit: 'MB/s', values: Object.fromEntries(rates) },
    { id: 'stream-memory', title: '  peak growth of memory', unit: 'MiB', values: Object.fromEntries(growth) },
  ];
}
