// A NATS server for the tests, which start it themselves, on loopback and in a folder of their own.

import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { isInstalled, unpack, whyNoPackages } from './debian.mjs';

/** Kept between runs, like the images. */
const FOLDER = '.cache/nats';

/** The server's program; nothing where it cannot be had. */
export async function ensureNats() {
  const program = path.resolve(FOLDER, 'usr/sbin/nats-server');
  if (existsSync(program)) return program;
  if (isInstalled('nats-server')) return 'nats-server';
  if (whyNoPackages()) return undefined;
  mkdirSync(FOLDER, { recursive: true });
  await unpack('nats-server', FOLDER);
  return program;
}
