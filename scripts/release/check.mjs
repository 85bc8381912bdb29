// Everything a release does, but for publishing: `npm run release:check [-- <target> …]`.
//
// The addon of this machine's own platform is built as it is shipped, packed and used. Those of the other targets are built
// by the profile `trial`, which is quicker: that they compile, link, and are for what they say they are for is the same.
//
//   npm run release:check -- --brief            this machine's own platform only, with the guest for it alone
//   npm run release:check -- --brief --others   and, by `cargo check`, the other guest and as many other targets as show every
//                                               system, processor and C library

import path from 'node:path';
import { parseArgs } from 'node:util';
import { command } from '../lifetime.mjs';
import { Steps, seconds } from '../steps.mjs';
import { ROOT, requireTools } from '../workspace.mjs';
import { buildAddon, checkAddon } from './addon.mjs';
import { disagreements } from './agree.mjs';
import { runGuest, useAddon } from './emulate.mjs';
import { buildGuest, checkGuest } from './guest.mjs';
import { pack } from './pack.mjs';
import { GUESTS, target as named, OUT, OWN, representatives, TARGETS } from './targets.mjs';

const TRIALS = path.join(OUT, 'trials');
const { values: options, positionals: wanted } = parseArgs({
  options: { brief: { type: 'boolean' }, others: { type: 'boolean' } },
  allowPositionals: true,
});

await command(async () => {
  const steps = new Steps('release:check');
  requireTools();
  await steps.time('what must agree', async () => {
    const found = await disagreements();
    if (found.length) throw new Error(found.join('\n  '));
  });
  const guests = GUESTS.filter(({ cpu }) => !options.brief || cpu === process.arch);
  for (const guest of guests) {
    await steps.time(`guest ${guest.cpu}`, () => buildGuest(guest.cpu));
    console.log(`guest ${guest.cpu}: ${await runGuest(guest)}`);
  }
  const whole = options.brief ? [OWN].filter(Boolean) : TARGETS;
  const rows = [];
  for (const target of wanted.length ? wanted.map(named) : whole) {
    rows.push(await steps.time(target.name, () => tryTarget(target, guests)));
  }
  if (options.others) rows.push(...(await checkOthers(steps, guests)));
  console.log(`\n✓ passed\n${rows.join('\n')}\n\n${steps.summary()}`);
});

/** What is not built compiles. */
async function checkOthers(steps, guests) {
  for (const { cpu } of GUESTS) {
    if (cpu !== process.arch) await steps.time(`guest ${cpu}, cargo check`, () => checkGuest(cpu));
  }
  for (const target of representatives()) {
    await steps.time(`${target.name}, cargo check`, () => checkAddon(target, guests));
  }
  return representatives().map(({ name }) => `  ${name.padEnd(18)} compiles`);
}

async function tryTarget(target, guests) {
  const began = Date.now();
  const isOwn = target === OWN;
  const how = isOwn ? {} : { profile: 'trial', folder: TRIALS };
  const { file, bytes, glibc } = await buildAddon(target, { ...how, guests });
  const built = Date.now() - began;
  const folder = path.join(OUT, 'check', target.name);
  await pack(folder, { addons: [path.dirname(file)], only: [target], anySize: !isOwn });
  const used = await useAddon(target, folder, path.join(ROOT, 'scripts/release/load.mjs'));
  const size = `${(bytes / 1e6).toFixed(2)} MB`;
  return `  ${target.name.padEnd(18)} ${seconds(built).padStart(8)} ${size.padStart(9)}  ${glibc ? `glibc ${glibc}, ` : ''}${used}`;
}
