// The addon for a target, with both guests in it, and verified: `npm run release:addon -- <target>`. Guests come first.

import { cpSync, existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { run } from '../child.mjs';
import { command } from '../lifetime.mjs';
import { ROOT } from '../workspace.mjs';
import { isMain } from './main.mjs';
import { GLIBC_FLOOR, GUESTS, manifest, target as named, OUT } from './targets.mjs';
import { compiler, exportsOfAddon, standInFrameworks, standInNode, TARGET_DIR, zig } from './toolchain.mjs';
import { verifyAddon } from './verify.mjs';

const FLAGS = {
  // An addon shares the C library of the process that loads it.
  musl: '-C target-feature=-crt-static',
  // The runtime of Microsoft's compiler is not on every Windows.
  msvc: '-C target-feature=+crt-static',
};

/**
 * @param {import('./targets.mjs').Target} target
 * @param {object} [options]
 * @param {string} [options.profile] `release` by default
 * @param {string} [options.folder] `release/addons` by default
 * @param {typeof GUESTS} [options.guests] those that it carries; all by default, as in a release
 * @param {Record<string, string>} [options.env]
 * @returns {Promise<{ file: string, bytes: number, glibc?: string }>} what has passed
 */
export async function buildAddon(target, options = {}) {
  const { profile = 'release', folder = path.join(OUT, 'addons'), guests = GUESTS, env } = options;
  const { rust, flags, cargo } = await cargoFor(target, guests);
  await cargo('rustc', ['--profile', profile], ['--', ...flags], { env });
  const library = { linux: 'libcofferdam.so', darwin: 'libcofferdam.dylib', win32: 'cofferdam.dll' }[target.os];
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, target.addon);
  cpSync(path.join(TARGET_DIR, rust, profile, library), file);
  return { file, ...verifyAddon(target, file, guests) };
}

/** Whether it compiles for a target, without machine code: `cargo check`. */
export async function checkAddon(target, guests = GUESTS) {
  const { cargo } = await cargoFor(target, guests);
  await cargo('check', [], []);
}

/** The folder where a build describes what the addon exports. */
export function typesOf(target) {
  const folder = path.join(TARGET_DIR, 'types', target.name);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Cargo for a target on this machine, with these guests to embed. */
async function cargoFor(target, guests) {
  const isNative = target.os === process.platform && target.os !== 'linux';
  const rust = isNative ? target.rust : target.elsewhere;
  const linking = isNative ? { program: 'cargo', env: {}, flags: [] } : await linkedByZig(target, rust);
  const compiling = await compiler(rust);
  const what = ['--locked', '--package', manifest.name, '--lib', '--target', linking.target ?? rust];
  const env = {
    ...filesOf(guests),
    ...compiling.env,
    ...linking.env,
    RUSTFLAGS: FLAGS[rust.split('-').at(-1)] ?? '',
    NAPI_TYPE_DEF_TMP_FOLDER: typesOf(target),
    // What Node 20 asks of macOS.
    MACOSX_DEPLOYMENT_TARGET: '11.0',
  };
  const cargo = (subcommand, before, after, options = {}) =>
    run(linking.program, [subcommand, ...what, ...before, ...compiling.args('unwind'), ...after], {
      cwd: ROOT,
      ...options,
      env: { ...env, ...options.env },
    });
  return { rust, flags: linking.flags, cargo };
}

async function linkedByZig(target, rust) {
  const { program, env } = await zig();
  const floor = target.libc === 'glibc' ? `.${GLIBC_FLOOR}` : '';
  return {
    program,
    target: `${rust}${floor}`,
    env: { ...env, ...(target.os === 'win32' && standInNode()) },
    flags:
      { darwin: () => ['-L', `framework=${standInFrameworks()}`], win32: () => ['-C', `link-arg=${exportsOfAddon()}`] }[
        target.os
      ]?.() ?? [],
  };
}

function filesOf(guests) {
  const missing = guests.filter((guest) => !existsSync(guest.file));
  if (missing.length)
    throw new Error(`build the guests first: npm run release:guest -- ${missing.map(({ cpu }) => cpu).join(' ')}`);
  return Object.fromEntries(guests.map((guest) => [guest.variable, guest.file]));
}

if (isMain(import.meta.url)) {
  const [name, profile] = process.argv.slice(2);
  await command(async () => console.log((await buildAddon(named(name), { profile })).file));
}
