// The programs that cofferdam is installed with and run in: package managers, runtimes, compilers and test runners, at the
// exact versions of `__test__/install/tools`. They are kept in `.cache`, away from the checkout's own dependencies and from
// every project that is tested, so that nothing is found that a user would not have.

import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { run } from '../child.mjs';
import { ROOT } from '../workspace.mjs';

const SOURCE = path.join(ROOT, '__test__/install/tools');
const CACHE = path.join(ROOT, '.cache');
const manifest = JSON.parse(readFileSync(path.join(SOURCE, 'package.json'), 'utf8'));
const pinned = { ...manifest.dependencies, ...manifest.optionalDependencies };

/** The exact version of a tool, or of a package that a consumer needs beside cofferdam. */
export function versionOf(name) {
  const version = pinned[name]?.split('@').at(-1);
  if (!version) throw new Error(`${name} has no version in ${path.relative(ROOT, SOURCE)}/package.json`);
  return version;
}

/** Majors of Node.js that are tested. */
export const NODE_MAJORS = Object.keys(pinned).flatMap((name) => name.match(/^node-(\d+)$/)?.[1] ?? []);

/**
 * @typedef {object} Tools
 * @property {string} folder
 * @property {(name: string) => string} path of a file in one of them
 * @property {(major: string) => string} node the program `node` of a major
 */

/** @returns {Promise<Tools>} installed, unless they are: no install script is run, the packages have their programs inside */
export async function ensureTools() {
  if (`${process.platform}-${process.arch}` !== 'linux-x64') {
    throw new Error('the majors of Node.js in __test__/install/tools are those for Linux on x64: run this there');
  }
  const folder = path.join(CACHE, `install-tools-${fingerprint()}`);
  if (!existsSync(folder)) {
    const draft = `${folder}.draft-${process.pid}`;
    removeOthers();
    mkdirSync(draft, { recursive: true });
    for (const file of ['package.json', 'package-lock.json']) cpSync(path.join(SOURCE, file), path.join(draft, file));
    const flags = ['--ignore-scripts', '--no-save', '--loglevel=error', '--fetch-retries=5'];
    await run('npm', ['install', ...flags], { cwd: draft, output: 'keep' });
    renameSync(draft, folder);
  }
  const file = (name) => path.join(folder, 'node_modules', name);
  return { folder, path: file, node: (major) => file(`node-${major}/bin/node`) };
}

function fingerprint() {
  const hash = createHash('sha256');
  for (const file of ['package.json', 'package-lock.json']) hash.update(readFileSync(path.join(SOURCE, file)));
  return hash.digest('hex').slice(0, 12);
}

/** They are large: those of another version, and drafts, are of no more use. */
function removeOthers() {
  if (!existsSync(CACHE)) return;
  for (const name of readdirSync(CACHE)) {
    if (name.startsWith('install-tools-')) rmSync(path.join(CACHE, name), { recursive: true, force: true });
  }
}
