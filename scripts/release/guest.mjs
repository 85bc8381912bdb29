// The guest for an architecture, static, as every addon carries it: `npm run release:guest -- x64 arm64`, on Linux.

import { cpSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { run } from '../child.mjs';
import { command } from '../lifetime.mjs';
import { ROOT } from '../workspace.mjs';
import { isMain } from './main.mjs';
import { GUESTS } from './targets.mjs';
import { compiler, linker, TARGET_DIR } from './toolchain.mjs';
import { verifyGuest } from './verify.mjs';

/** The same flags as in crates/core/build.rs: no loader, no relocations. */
const FLAGS = '-C target-feature=+crt-static -C relocation-model=static';

export async function buildGuest(cpu) {
  const guest = await cargo('build', cpu, { profile: 'guest', env: await linker(cpu) });
  mkdirSync(path.dirname(guest.file), { recursive: true });
  // With its time: whatever embeds it is built again only if it has changed.
  cpSync(path.join(TARGET_DIR, guest.rust, 'guest/guest'), guest.file, { preserveTimestamps: true });
  verifyGuest(guest);
  return guest.file;
}

/** Whether it compiles for an architecture, without machine code: `cargo check`. */
export async function checkGuest(cpu) {
  await cargo('check', cpu, { profile: 'dev' });
}

async function cargo(subcommand, cpu, { profile, env: added = {} }) {
  const guest = GUESTS.find((each) => each.cpu === cpu);
  if (!guest)
    throw new Error(`there is no guest for "${cpu}", only for ${GUESTS.map((each) => each.cpu).join(' and ')}`);
  const { args, env } = await compiler(guest.rust);
  const what = ['--locked', '--package', 'cofferdam-guest', '--profile', profile, '--target', guest.rust];
  await run(env.CARGO ?? 'cargo', [subcommand, ...what, ...args('abort')], {
    cwd: ROOT,
    env: { ...env, ...added, RUSTFLAGS: FLAGS },
  });
  return guest;
}

if (isMain(import.meta.url)) {
  const wanted = process.argv.slice(2);
  await command(async () => {
    for (const cpu of wanted.length ? wanted : GUESTS.map((guest) => guest.cpu)) console.log(await buildGuest(cpu));
  });
}
