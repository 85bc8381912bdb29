// How long `require` takes in a fresh Node process.

import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { compare } from '../measure.mjs';
import { output } from '../program.mjs';

const MODULES = [
  { id: 'cofferdam', path: fileURLToPath(new URL('../../dist/index.js', import.meta.url)) },
  { id: 'dockerode', path: createRequire(import.meta.url).resolve('dockerode') },
];

export async function load({ planned }) {
  const sample = async ({ path }) => {
    const script = `const began = performance.now(); require(${JSON.stringify(path)}); console.log(performance.now() - began)`;
    return Number(await output(process.execPath, ['--eval', script]));
  };
  const values = await compare(MODULES, sample, planned({ rounds: 15 }));
  return [{ id: 'load', title: 'require() in a fresh process', unit: 'ms', values }];
}
