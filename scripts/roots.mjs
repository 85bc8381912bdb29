// The images of the tests as plain folders, for sandboxes without an engine: unpacked by whoever uses them, so that all
// their files are that user's own.
//
//   node scripts/roots.mjs <folder>

import { chownSync, existsSync, mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { exited, launch } from './child.mjs';
import { ensureEngine } from './engine.mjs';
import { EngineApi } from './engine-api.mjs';
import { ensureFixtures } from './fixtures.mjs';
import { command } from './lifetime.mjs';

/** Names of the folders, and the images they are made of; the empty one is made of nothing. */
const ROOTS = { alpine: 'alpine:3.19', debian: 'ubuntu:22.04', empty: undefined };

/**
 * @param {string} host the engine, as in DOCKER_HOST
 * @param {string} folder made if need be; it belongs to `user`, or to us
 * @param {{ uid: number, gid: number }} [user]
 */
export async function ensureRoots(host, folder, user) {
  for (const [name, image] of Object.entries(ROOTS)) {
    const root = path.join(folder, name);
    if (existsSync(root)) continue;
    const draft = `${root}.draft-${process.pid}`;
    mkdirSync(draft, { recursive: true });
    if (user) for (const made of [folder, draft]) chownSync(made, user.uid, user.gid);
    if (image) await unpack(await new EngineApi(host).exportRoot(image), draft, user);
    renameSync(draft, root);
  }
}

/** Root keeps whose file is whose; anybody else owns them all. Devices are nobody's to make. */
async function unpack(tar, folder, user) {
  const owner = user && { uid: user.uid, gid: user.gid };
  const args = ['--extract', '--exclude=dev/*', '--delay-directory-restore', '-C', folder];
  const child = launch('tar', user ? ['--no-same-owner', ...args] : args, {
    stdio: ['pipe', 'inherit', 'inherit'],
    ...owner,
  });
  const exit = exited(child);
  await pipeline(tar, child.stdin);
  const { code } = await exit;
  if (code !== 0) throw new Error(`tar ended with ${code} in ${folder}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await command(async () => {
    const [folder] = process.argv.slice(2);
    if (!folder) throw new Error('usage: node scripts/roots.mjs <folder>');
    const engine = await ensureEngine();
    await ensureFixtures(engine.host, { images: Object.values(ROOTS).filter(Boolean) });
    await ensureRoots(engine.host, folder);
    await engine.stop();
  });
}
