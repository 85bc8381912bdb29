// What is on the throw-away registry: the packages as they would be released. Those of platforms whose addon is not built
// here are there without it, so that a package manager sees the whole list and has to choose.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { filesOf } from '../release/npm-folder.mjs';
import { pack } from '../release/pack.mjs';
import { OUT, TARGETS } from '../release/targets.mjs';
import { ROOT } from '../workspace.mjs';

/**
 * Of any size: a checkout may have a build that is not the release's. What is released is measured where it is packed.
 *
 * @param {string} folder for tarballs and drafts
 * @returns {Promise<{ main: import('../release/pack.mjs').Packed, publish: string[] }>} what to give to `npm publish`, the
 *   main package last
 */
export async function packRelease(folder) {
  // This machine's own is the one of the checkout, whatever an earlier release left.
  const addons = [ROOT, path.join(OUT, 'addons')];
  const packed = await pack(path.join(folder, 'tarballs'), { anySize: true, addons });
  const main = packed.at(-1);
  const absent = TARGETS.filter((target) => !packed.some(({ name }) => name === target.package));
  const hollow = absent.map((target) => {
    const home = path.join(folder, 'hollow', target.name);
    mkdirSync(home, { recursive: true });
    for (const [file, text] of Object.entries(filesOf(target))) writeFileSync(path.join(home, file), text);
    return home;
  });
  return { main, publish: [...hollow, ...packed.map(({ file }) => file)] };
}

/** The packages of which exactly one may ever be installed. */
export const PLATFORM_PACKAGES = TARGETS.map((target) => target.package);
