// A container registry for the tests, on loopback: where pulls can be tried without any outside.

import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { isInstalled, unpack, whyNoPackages } from './debian.mjs';

/** Kept between runs, like the images. */
const FOLDER = '.cache/registry';

/** The registry's program; nothing where it cannot be had. */
export async function ensureRegistry() {
  const program = path.resolve(FOLDER, 'usr/bin/docker-registry');
  if (existsSync(program)) return program;
  if (isInstalled('docker-registry')) return 'docker-registry';
  if (whyNoPackages()) return undefined;
  mkdirSync(FOLDER, { recursive: true });
  await unpack('docker-registry', FOLDER);
  return program;
}
