// Programs that the tests start themselves, on loopback and in folders of their own: from the machine, or unpacked from its
// packages and kept between runs, like the images.

import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { isInstalled, unpack, whyNoPackages } from './debian.mjs';

/** A container registry: where pulls can be tried without any outside. */
export const REGISTRY = { name: 'docker-registry', place: 'usr/bin' };

/** An object store of its own kind, with JetStream. */
export const NATS = { name: 'nats-server', place: 'usr/sbin' };

/** The program, by its package's name; nothing where it cannot be had. */
export async function ensureProgram({ name, place }) {
  const folder = path.join('.cache', name);
  const program = path.resolve(folder, place, name);
  if (existsSync(program)) return program;
  if (isInstalled(name)) return name;
  if (whyNoPackages()) return undefined;
  mkdirSync(folder, { recursive: true });
  await unpack(name, folder);
  return program;
}
