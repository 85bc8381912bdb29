// The packed packages, used by this very process: `node scripts/release/load.mjs <folder of tarballs>`.
//
// Needs nothing but a runtime (Node, Bun or Deno, of any system and libc) and the tarballs, so that it can run where
// nothing is installed: in a bare container, under an emulator.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const folder = process.argv[2];

// Below the checkout: what the packages depend on is found in its node_modules, and their addon is not.
mkdirSync(path.join(ROOT, '.cache'), { recursive: true });
const project = mkdtempSync(path.join(ROOT, '.cache/load-'));
try {
  // A package of its own: else 'cofferdam' would be the checkout, by its own name.
  writeFileSync(path.join(project, 'package.json'), '{ "private": true }');
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.tgz'))) {
    const name = file.replace(/-\d+\.\d+\.\d+.*$/, '');
    unpack(gunzipSync(readFileSync(path.join(folder, file))), path.join(project, 'node_modules', name));
  }
  await use(createRequire(path.join(project, 'main.cjs')));
} finally {
  // Windows holds on to a library for as long as the process lives.
  if (process.platform !== 'win32') rmSync(project, { recursive: true, force: true });
}

/** The core answers from the addon: an engine that is not there is told apart, by code, from everything else. */
async function use(require) {
  const { SandboxManager, version } = require('cofferdam');
  const manager = new SandboxManager({ backend: 'docker', docker: { host: 'tcp://127.0.0.1:1' } });
  const error = await manager.info().then(
    () => undefined,
    (reason) => reason,
  );
  await manager.close();
  if (error?.code !== 'ENGINE_UNAVAILABLE') throw new Error(`the core does not answer as it should: ${error}`);
  const runtime = process.versions.bun ? `Bun ${process.versions.bun}` : `Node ${process.versions.node}`;
  const loaded = Object.keys(require.cache).find((file) => file.endsWith('.node'));
  if (!loaded?.startsWith(project)) throw new Error(`what was loaded is not what was packed: ${loaded}`);
  console.log(
    `${runtime} on ${process.platform} ${process.arch} runs cofferdam ${version} by ${path.basename(loaded)}`,
  );
}

function unpack(tar, target) {
  for (let at = 0; tar[at]; ) {
    const field = (start, length) => tar.toString('latin1', at + start, at + start + length).replace(/\0.*$/s, '');
    const size = Number.parseInt(field(124, 12), 8);
    const name = [field(345, 155), field(0, 100)]
      .filter(Boolean)
      .join('/')
      .replace(/^package\//, '');
    const file = path.join(target, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, tar.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
}
