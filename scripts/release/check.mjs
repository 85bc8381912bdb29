// Everything a release does, but for publishing: `npm run release:check [-- <target> …]`.
//
// The addon of this machine's own platform is built as it is shipped, packed and used. Those of the other targets are built
// by the profile `trial`, which is quicker: that they compile, link, and are for what they say they are for is the same.

import path from 'node:path';
import { command } from '../lifetime.mjs';
import { Steps, seconds } from '../steps.mjs';
import { ROOT, requireTools } from '../workspace.mjs';
import { buildAddon } from './addon.mjs';
import { disagreements } from './agree.mjs';
import { runGuest, useAddon } from './emulate.mjs';
import { buildGuest } from './guest.mjs';
import { pack } from './pack.mjs';
import { GUESTS, target as named, OUT, TARGETS } from './targets.mjs';

const TRIALS = path.join(OUT, 'trials');
const wanted = process.argv.slice(2);

await command(async () => {
  const steps = new Steps();
  requireTools();
  await steps.time('what must agree', async () => {
    const found = await disagreements();
    if (found.length) throw new Error(found.join('\n  '));
  });
  for (const guest of GUESTS) {
    await steps.time(`guest ${guest.cpu}`, () => buildGuest(guest.cpu));
    console.log(`guest ${guest.cpu}: ${await runGuest(guest)}`);
  }
  const rows = [];
  for (const target of wanted.length ? wanted.map(named) : TARGETS) {
    rows.push(await steps.time(target.name, () => tryTarget(target)));
  }
  console.log(`\n✓ passed\n${rows.join('\n')}\n\n${steps.summary()}`);
});

async function tryTarget(target) {
  const began = Date.now();
  const isOwn = target.os === process.platform && target.cpu === process.arch && target.libc !== 'musl';
  const { file, bytes, glibc } = await buildAddon(target, isOwn ? {} : { profile: 'trial', folder: TRIALS });
  const built = Date.now() - began;
  const folder = path.join(OUT, 'check', target.name);
  await pack(folder, { addons: [path.dirname(file)], only: [target], anySize: !isOwn });
  const used = await useAddon(target, folder, path.join(ROOT, 'scripts/release/load.mjs'));
  const size = `${(bytes / 1e6).toFixed(2)} MB`;
  return `  ${target.name.padEnd(18)} ${seconds(built).padStart(8)} ${size.padStart(9)}  ${glibc ? `glibc ${glibc}, ` : ''}${used}`;
}
