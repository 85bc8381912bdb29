// The packages of a release as tarballs: the main one, and the one of each target whose addon is built.
//
//   node scripts/release/pack.mjs <folder> [--addons <folder>] [--complete] [--any-size]
//
// Everything is put together in a folder of its own, never in the checkout: `dist/` is made afresh, so that
// nothing stale is shipped, and only there does the main package name the others as optional dependencies. In the
// checkout that would make every `npm install` ask the registry for packages of a version that is yet to be released.

import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { ROOT } from '../workspace.mjs';
import { bundle } from './bundle.mjs';
import { isMain } from './main.mjs';
import { filesOf } from './npm-folder.mjs';
import { manifest, OUT, TARGETS } from './targets.mjs';

const exec = promisify(execFile);

/**
 * In bytes: what is downloaded of the main package, what lies on the disk of a platform's. What is above is a mistake: a
 * file too many, an addon that was not stripped.
 */
const MAIN_PACKED_LIMIT = 300_000;
const PLATFORM_UNPACKED_LIMIT = 12_000_000;

/**
 * @param {string} folder where the tarballs go
 * @param {object} [options]
 * @param {string[]} [options.addons] folders to look for addons in, the first that has one wins
 * @param {boolean} [options.complete] whether a target without an addon is an error
 * @param {boolean} [options.anySize] for builds that are not those of a release: there, too large is an error
 * @param {import('./targets.mjs').Target[]} [options.only] targets; all of them if nothing is said
 * @returns {Promise<Packed[]>} the main package last: it is published when all that it depends on is there
 *
 * @typedef {{ name: string, version: string, file: string, packedBytes: number, unpackedBytes: number }} Packed
 */
export async function pack(folder, options = {}) {
  const { addons = [path.join(OUT, 'addons'), ROOT], complete = false, anySize = false, only = TARGETS } = options;
  const found = only.map((target) => ({
    target,
    addon: addons.map((each) => path.join(each, target.addon)).find(existsSync),
  }));
  const missing = found.find(({ addon }) => !addon);
  if (complete && missing) {
    throw new Error(`no addon for ${missing.target.name} in ${addons.join(' or ')}: build it first`);
  }
  mkdirSync(folder, { recursive: true });
  const stage = mkdtempSync(path.join(os.tmpdir(), 'cofferdam-pack-'));
  const packed = [];
  const add = async (packing) => {
    const each = await packing;
    if (!anySize) checkSize(each);
    packed.push(each);
  };
  try {
    for (const { target, addon } of found) if (addon) await add(packPlatform(stage, target, addon, folder));
    await add(packMain(stage, folder));
    return packed;
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

function checkSize({ name, packedBytes, unpackedBytes }) {
  const [bytes, state, limit] =
    name === manifest.name
      ? [packedBytes, 'packed', MAIN_PACKED_LIMIT]
      : [unpackedBytes, 'unpacked', PLATFORM_UNPACKED_LIMIT];
  if (bytes > limit) throw new Error(`${name} is ${bytes} bytes ${state}, and the limit is ${limit}`);
}

async function packPlatform(stage, target, addon, folder) {
  const home = path.join(stage, target.name);
  mkdirSync(home);
  for (const [file, text] of Object.entries(filesOf(target))) writeFileSync(path.join(home, file), text);
  writeManifest(home, JSON.parse(filesOf(target)['package.json']));
  cpSync(addon, path.join(home, target.addon));
  cpSync(path.join(ROOT, 'LICENSE'), path.join(home, 'LICENSE'));
  const expected = ['LICENSE', 'README.md', target.addon, 'package.json'];
  return npmPack(home, folder, (files) => files.sort().join() === expected.sort().join());
}

async function packMain(stage, folder) {
  const home = path.join(stage, 'main');
  mkdirSync(home);
  await bundle(path.join(home, 'dist'));
  for (const file of manifest.files) {
    if (file !== 'dist') cpSync(path.join(ROOT, file), path.join(home, file), { recursive: true });
  }
  const { devDependencies, scripts, napi, ...shipped } = manifest;
  const optionalDependencies = Object.fromEntries(TARGETS.map((target) => [target.package, manifest.version]));
  writeManifest(home, { ...shipped, optionalDependencies });
  return npmPack(home, folder, (files) => !files.some((file) => file.endsWith('.node')));
}

/** The registry believes a statement of provenance only of the repository that the package names. */
function writeManifest(home, json) {
  const { GITHUB_SERVER_URL: server, GITHUB_REPOSITORY: repository } = process.env;
  const source = server && repository ? { repository: { type: 'git', url: `git+${server}/${repository}.git` } } : {};
  writeFileSync(path.join(home, 'package.json'), `${JSON.stringify({ ...json, ...source }, null, 2)}\n`);
}

async function npmPack(home, folder, allowed) {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', path.resolve(folder)];
  const { stdout } = await exec('npm', args, { cwd: home, shell: process.platform === 'win32' });
  const [{ name, version, filename, size, unpackedSize, files }] = JSON.parse(stdout);
  const paths = files.map((file) => file.path);
  if (!allowed(paths)) throw new Error(`${name} has files that do not belong in it: ${paths.join(', ')}`);
  return { name, version, file: path.resolve(folder, filename), packedBytes: size, unpackedBytes: unpackedSize };
}

if (isMain(import.meta.url)) {
  const options = {
    addons: { type: 'string', multiple: true },
    complete: { type: 'boolean' },
    'any-size': { type: 'boolean' },
  };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const { 'any-size': anySize, ...others } = values;
  const packed = await pack(positionals[0] ?? path.join(OUT, 'packages'), { anySize, ...others });
  console.log(JSON.stringify(packed, null, 2));
}
