// Programs that the tests start themselves, on loopback and in folders of their own: from the machine, or unpacked from its
// packages and kept between runs, like the images.

import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { install, isInstalled, unpack, whyNoPackages } from './debian.mjs';
import { Unavailable } from './unavailable.mjs';

/** A container registry: where pulls can be tried without any outside. */
export const REGISTRY = { name: 'docker-registry', place: 'usr/bin' };

/** An object store of its own kind, with JetStream. */
export const NATS = { name: 'nats-server', place: 'usr/sbin' };

/** The other engine, with what it starts and what it is linked with; it runs containers with Docker's runc. */
export const PODMAN = { name: 'podman', place: 'usr/bin', also: ['conmon', 'libsubid4', 'libgpgme11'] };

/** The program, by its package's name; nothing where it cannot be had. */
export async function ensureProgram({ name, place, also = [] }) {
  const folder = path.join('.cache', name);
  const program = path.resolve(folder, place, name);
  if (existsSync(program)) return program;
  if (isInstalled(name)) return name;
  if (whyNoPackages()) return undefined;
  // A run that is killed on the way leaves nothing that the next one takes for the program.
  const draft = `${folder}.draft`;
  for (const left of [draft, folder]) rmSync(left, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  for (const each of [...also, name]) await unpack(each, draft);
  renameSync(draft, folder);
  return program;
}

/** A terminal that tests drive as a person would. It needs libraries of its own, so that it is installed, not unpacked. */
export async function ensureTmux() {
  if (isInstalled('tmux')) return;
  const why = whyNoPackages();
  if (why) throw new Unavailable(`There is no tmux here. ${why}`, 'Install tmux with the package manager you have.');
  await install(['tmux']);
}

/** The shells that completions are tried in, besides bash; installed, for they find their parts at fixed places. */
export async function ensureShells() {
  const missing = ['zsh', 'fish'].filter((shell) => !isInstalled(shell));
  if (missing.length > 0 && !whyNoPackages()) await install(missing);
}
