// A fresh clone made ready: dependencies, build, engine and images. The demo and the tests take the same way.

import { existsSync, readFileSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isInstalled } from './debian.mjs';
import { ensureEngine } from './engine.mjs';
import { ensureFixtures } from './fixtures.mjs';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

export function requireTools() {
  process.chdir(ROOT);
  // Where rustup puts it, for shells that have not read its profile.
  process.env.PATH += `:${path.join(os.homedir(), '.cargo/bin')}`;
  if (!isInstalled('cargo')) {
    throw new Error('cargo is not in PATH. Install Rust stable (https://rustup.rs) and open a new shell.');
  }
}

/**
 * Installs what the lock file says, unless what is installed is as new. Not `npm ci`: a lock file without download addresses
 * has no entries for other platforms' optional packages, and `npm ci` takes that for an error. Within `.ci/run`, it is done once.
 *
 * @returns {Promise<void>} to be awaited when they are needed: it is mostly network
 */
export function installDependencies(steps) {
  if (process.env.COFFERDAM_RUN) return toldLater(fromRun('installed'));
  const installed = 'node_modules/.package-lock.json';
  const fresh = existsSync(installed) && statSync(installed).mtimeMs >= statSync('package-lock.json').mtimeMs;
  const args = ['install', '--no-save', '--no-audit', '--no-fund'];
  return fresh ? Promise.resolve() : toldLater(steps.run('npm install', 'npm', args));
}

/** Builds addon and `dist/`; within `.ci/run`, that is done once for all commands, and only awaited here. */
export function build(steps) {
  if (!process.env.COFFERDAM_RUN) return steps.run('build', 'npm', ['run', 'build']);
  return steps.time('build (awaited)', () => fromRun('built'));
}

/**
 * Starts getting an engine with images on it, beside whatever else runs (it is mostly network and disk). Within `.ci/run`,
 * it is the engine of the whole run.
 *
 * @returns {Promise<import('./engine.mjs').Engine>} to be awaited when it is needed
 */
export function prepareEngine(steps, images) {
  if (process.env.COFFERDAM_RUN) {
    const awaited = steps.time('engine and images (awaited)', () => fromRun('engine'));
    return toldLater(awaited.then((host) => ({ host, started: false, stop: async () => {} })));
  }
  const log = (line) => console.log(`  engine │ ${line}`);
  const engine = steps.time('engine and images', async () => {
    const found = await ensureEngine({ log });
    await ensureFixtures(found.host, { images, log });
    return found;
  });
  return toldLater(engine);
}

/** What `.ci/run` has made ready under this name: the text of a file that it writes in the end, or never when it fails. */
async function fromRun(name) {
  const file = path.join(process.env.COFFERDAM_RUN, name);
  while (!existsSync(file)) await sleep(100);
  return readFileSync(file, 'utf8');
}

/** Its failure is told when it is awaited, not while another step is still at work. */
export function toldLater(promise) {
  promise.catch(() => {});
  return promise;
}
