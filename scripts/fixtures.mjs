// The images that the tests and the demo run in. One that is on the engine is left alone; a missing one is
// pulled where a registry answers, and otherwise built from Debian packages (stand-ins.mjs).
//
//   node scripts/fixtures.mjs [image…]

import { mkdtempSync, rmdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './child.mjs';
import { install, isInstalled, whyNoPackages } from './debian.mjs';
import { ensureEngine } from './engine.mjs';
import { EngineApi } from './engine-api.mjs';
import { atEnd, command } from './lifetime.mjs';
import { seconds } from './steps.mjs';
import { Unavailable } from './unavailable.mjs';

/** An image without a single file: the distroless class. No registry has it. */
const EMPTY = 'cofferdam/empty:latest';

/** Smallest first: the first pull is the probe for a registry. */
export const FIXTURES = ['alpine:3.19', 'ubuntu:22.04', 'python:3.11-slim', 'node:20-slim', EMPTY];

/** Raised when a stand-in is built in another way: what an older checkout left on an engine is built again. */
const STAND_IN = { name: 'cofferdam.fixture', value: 'stand-in-2' };
export const STAND_IN_LABEL = `LABEL ${STAND_IN.name}=${STAND_IN.value}`;

const STAND_INS = fileURLToPath(new URL('./stand-ins.mjs', import.meta.url));
const EMPTY_TAR = [Buffer.alloc(1024)];

/**
 * @param {string} host the engine, as in DOCKER_HOST
 * @param {{ images?: string[], log?: (line: string) => void }} [options]
 * @throws {Unavailable} when no registry answers and this machine cannot build stand-ins
 */
export async function ensureFixtures(host, { images = FIXTURES, log = console.log } = {}) {
  const unknown = images.find((name) => !FIXTURES.includes(name));
  if (unknown) throw new Error(`"${unknown}" is not a fixture image. They are: ${FIXTURES.join(', ')}`);
  const began = Date.now();
  const api = new EngineApi(host);
  const present = await Promise.all(images.map((name) => isCurrent(api, name)));
  let missing = images.filter((_, index) => !present[index]);

  if (missing.includes(EMPTY)) {
    await api.importImage(EMPTY, EMPTY_TAR, [STAND_IN_LABEL]);
    log(`${EMPTY} made`);
    missing = missing.filter((name) => name !== EMPTY);
  }
  missing = await pullUntilRefused(api, missing, log);
  if (missing.length > 0) await buildStandIns(host, missing, log);
  log(`${images.length} image(s) ready in ${seconds(Date.now() - began)}`);
}

/** Whether an image is there, and is not an older stand-in. */
async function isCurrent(api, name) {
  const image = await api.image(name);
  const stood = image?.Config?.Labels?.[STAND_IN.name];
  return image !== undefined && (stood === undefined || stood === STAND_IN.value);
}

/** Resolves to what could not be pulled; after one refusal the rest is not tried. */
async function pullUntilRefused(api, images, log) {
  for (const [index, name] of images.entries()) {
    const began = Date.now();
    try {
      await api.pull(name);
      log(`${name} pulled in ${seconds(Date.now() - began)}`);
    } catch (error) {
      log(`${name} could not be pulled (${seconds(Date.now() - began)}): ${error.message}`);
      return images.slice(index);
    }
  }
  return [];
}

async function buildStandIns(host, images, log) {
  const obstacle = whyNoPackages();
  if (obstacle) {
    throw new Unavailable(
      `No registry answers, and stand-ins for ${images.join(', ')} cannot be built. ${obstacle}`,
      'Pull or load these images into the engine by hand, or give it a registry it can reach.',
    );
  }
  if (!isInstalled('debootstrap')) await install(['debootstrap']);
  log(`building stand-ins: ${images.join(', ')}`);
  // A mount namespace of its own: its file systems are gone when it is, and it goes when we are killed.
  const folder = mkdtempSync(path.join(os.tmpdir(), 'cofferdam-stand-ins-'));
  const removeFolder = () => rmdirSync(folder);
  const release = atEnd(removeFolder);
  try {
    const script = [process.execPath, STAND_INS, host, folder, ...images];
    await run('setpriv', ['--pdeathsig', 'TERM', 'unshare', '--mount', ...script], {
      output: 'keep',
      onLine: log,
    });
  } finally {
    if (release()) removeFolder();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await command(async () => {
    const images = process.argv.slice(2);
    const engine = await ensureEngine();
    await ensureFixtures(engine.host, images.length > 0 ? { images } : {});
    await engine.stop();
  });
}
