// From an empty folder with only Node.js to the first answer of a sandbox: the time a new user waits. Every round has a home,
// a cache of packages and a state folder that are new; the registry is local and has everything.

import os from 'node:os';
import path from 'node:path';
import { median } from './table.mjs';

const ROUNDS = 7;

/** @typedef {{ installMs: number, answerMs: number, togetherMs: number }} Wait */

/** @returns {Promise<{ p50: Wait, best: Wait, worst: Wait, rounds: number, load: number }>} `load`: of the minute before */
export async function firstSandbox(ground) {
  const [load] = os.loadavg();
  const waits = [];
  for (let round = 1; round <= ROUNDS; round++) waits.push(await once(ground, `first-${round}`));
  const of = (choose) => {
    const names = ['installMs', 'answerMs', 'togetherMs'];
    return Object.fromEntries(names.map((name) => [name, choose(waits.map((wait) => wait[name]))]));
  };
  return {
    p50: of(median),
    best: of((values) => Math.min(...values)),
    worst: of((values) => Math.max(...values)),
    rounds: ROUNDS,
    load,
  };
}

async function once(ground, name) {
  const env = { HOME: ground.home(`${name}-home`), COFFERDAM_STATE: path.join(ground.folder, `${name}-state`) };
  const project = ground.project(name, { consumer: 'first', env });
  const began = performance.now();
  await project.run('npm', ['install', 'cofferdam']);
  const installed = performance.now();
  await project.visit(process.execPath, ['first.mjs']);
  const answered = performance.now();
  project.remove();
  return { installMs: installed - began, answerMs: answered - installed, togetherMs: answered - began };
}
