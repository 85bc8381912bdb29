// What compiles and links for a target on this machine.
//
// The compiler is the machine's own where it has the target's standard library (`rustup target add` gets it). Where it has
// not, and no rustup can get it, Debian's `rustc-web` compiles the standard library along with us from `rust-web-src`.
// Zig links, and brings the C libraries of every Linux, of macOS and of Windows: for a system that is not this one, and
// for Linux always, because there it decides how old a glibc may be.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { run } from '../child.mjs';
import { install, isInstalled, whyNoPackages } from '../debian.mjs';
import { ROOT } from '../workspace.mjs';

const PYTHON_PACKAGES = ['ziglang==0.17.0', 'cargo-zigbuild==0.24.0'];
const ZIG = path.join(ROOT, '.cache/zig');
const DEBIAN_SOURCES = '/usr/lib/rustlib/src/rust/library';

export const TARGET_DIR = process.env.CARGO_TARGET_DIR ?? path.join(ROOT, 'target/cross');

/**
 * @param {string} rust a target of rustc
 * @returns {Promise<{ args: (panic: 'unwind' | 'abort') => string[], env: Record<string, string> }>} what cargo gets
 */
export async function compiler(rust) {
  const env = { CARGO_TARGET_DIR: TARGET_DIR };
  if (hasStandardLibrary(rust)) return { args: () => [], env };
  if (!existsSync(DEBIAN_SOURCES)) await need(['rustc-web', 'cargo-web', 'rust-web-src'], `rustup target add ${rust}`);
  return {
    args: (panic) => [`-Zbuild-std=std,panic_${panic}`],
    env: {
      ...env,
      RUSTC: '/usr/bin/rustc',
      CARGO: '/usr/bin/cargo',
      PATH: `/usr/bin:${process.env.PATH}`,
      // The sources are those of this very compiler, so that what is unstable about it cannot change below us.
      RUSTC_BOOTSTRAP: '1',
    },
  };
}

function hasStandardLibrary(rust) {
  try {
    const print = ['--print', 'target-libdir', '--target', rust];
    const folder = execFileSync('rustc', print, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
    return readdirSync(folder).some((file) => file.startsWith('libstd-'));
  } catch {
    return false;
  }
}

/** The environment in which `cargo zigbuild` works. */
export async function zig() {
  if (!existsSync(path.join(ZIG, 'ziglang'))) {
    const pip = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', ZIG, ...PYTHON_PACKAGES];
    await run(process.platform === 'win32' ? 'python' : 'python3', pip);
  }
  return {
    program: path.join(ZIG, 'bin/cargo-zigbuild'),
    env: { CARGO_ZIGBUILD_ZIG_PATH: path.join(ZIG, 'ziglang/zig') },
  };
}

/** What a DLL offers: zig passes over the list that rustc gives it, and then offers everything, which is too much for one. */
export function exportsOfAddon() {
  mkdirSync(ZIG, { recursive: true });
  const file = path.join(ZIG, 'addon.def');
  writeFileSync(file, 'EXPORTS\n  napi_register_module_v1\n');
  return file;
}

/**
 * napi-build wants a libnode.dll to link with where the ABI is that of GNU, and Debian's compiler the library of GCC's stack
 * protector. We look Node's symbols up at run time, and protect no stack of ours by that, so empty ones do.
 */
export function standInNode() {
  const folder = path.join(ZIG, 'libnode');
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'libnode.dll'), '');
  for (const file of ['libnode.dll.a', 'libnode.a', 'libssp_nonshared.a', 'libssp.a'])
    writeFileSync(path.join(folder, file), '!<arch>\n');
  return { LIBNODE_PATH: folder };
}

/**
 * Zig has macOS's own library, but none of its frameworks. For the linker it is enough to hear where they are going to be:
 * an addon's symbols are looked up when it is loaded.
 *
 * @returns {string} a folder for `-L framework=`
 */
export function standInFrameworks() {
  const folder = path.join(ZIG, 'frameworks');
  for (const name of ['CoreFoundation', 'Security']) {
    const home = path.join(folder, `${name}.framework`);
    mkdirSync(home, { recursive: true });
    const place = `/System/Library/Frameworks/${name}.framework/Versions/A/${name}`;
    const targets = 'targets: [ x86_64-macos, arm64-macos ]';
    writeFileSync(
      path.join(home, `${name}.tbd`),
      `--- !tapi-tbd\ntbd-version: 4\n${targets}\ninstall-name: '${place}'\nexports:\n  - ${targets}\n    symbols: [ ]\n...\n`,
    );
  }
  return folder;
}

/** GCC for the other architecture of Linux, with a glibc that can be linked into a program. */
export async function linker(cpu) {
  if (cpu === os.arch()) return {};
  const prefix = { x64: 'x86_64', arm64: 'aarch64' }[cpu];
  const gcc = `${prefix}-linux-gnu-gcc`;
  const suffix = prefix.replace('_', '-');
  const packages = [`gcc-${suffix}-linux-gnu`, `libc6-dev-${cpu === 'x64' ? 'amd64' : cpu}-cross`];
  if (!isInstalled(gcc)) await need(packages, `installing ${gcc}`);
  return { [`CARGO_TARGET_${prefix.toUpperCase()}_UNKNOWN_LINUX_GNU_LINKER`]: gcc };
}

export async function need(packages, instead) {
  const why = whyNoPackages();
  if (why) throw new Error(`this takes the packages ${packages.join(', ')}. ${why} Or try ${instead}.`);
  await install(packages);
}
