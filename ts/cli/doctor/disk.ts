/** Free space where engines and sandboxes store data: bytes and inodes. */
import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { release, tmpdir } from 'node:os';
import path from 'node:path';
import type { EngineInfo } from '../../options';
import { bytes } from '../print';
import { isPodman } from './engine';
import { type Finding, faulty, ok } from './finding';
import { within } from './time-limit';

const LIMIT_MS = 3_000;

const MiB = 1024 ** 2;
const LITTLE = { bytes: 1024 * MiB, inodes: 10_000 };
const NONE = { bytes: 32 * MiB, inodes: 100 };

/** A folder, whether sandboxes need space in it, and what frees space. */
interface Place {
  readonly id: string;
  readonly what: string;
  readonly folder: string;
  readonly isNeeded: boolean;
  readonly cure: string;
}

export async function disk(docker: EngineInfo | undefined, namespaces: EngineInfo | undefined): Promise<Finding[]> {
  return Promise.all([...engines(docker), ...ours(namespaces), temporary()].map(look));
}

/** Only folders on this machine can be checked. */
function engines(info: EngineInfo | undefined): Place[] {
  const { host = '', dataRoot, kernel } = info?.abilities ?? {};
  if (!info || typeof dataRoot !== 'string' || kernel !== release()) return [];
  if (!/^unix:/.test(String(host)) || !existsSync(dataRoot)) return [];
  const cure = isPodman(info) ? 'podman system prune' : 'docker system prune';
  return [{ id: 'disk.engine', what: "the engine's data", folder: dataRoot, isNeeded: true, cure }];
}

function ours(info: EngineInfo | undefined): Place[] {
  const { state } = info?.abilities ?? {};
  if (typeof state !== 'string') return [];
  const cure = 'npx cofferdam prune --backend namespaces';
  const places = [{ id: 'disk.state', what: "sandboxes' state", folder: state, isNeeded: true, cure }];
  const images = process.env.COFFERDAM_IMAGES ?? path.join(state, 'images');
  if (!existsSync(images) || images.startsWith(`${state}/`)) return places;
  return [...places, { id: 'disk.images', what: 'images', folder: images, isNeeded: false, cure }];
}

function temporary(): Place {
  const folder = tmpdir();
  const cure = process.platform === 'win32' ? 'cleanmgr' : `du -xsh ${folder}/* | sort -h`;
  return { id: 'disk.tmp', what: 'temporary files', folder, isNeeded: false, cure };
}

async function look({ id, what, folder, isNeeded, cure }: Place): Promise<Finding> {
  try {
    const { bavail, bsize, ffree, files, blocks } = await within(LIMIT_MS, `the disk of ${folder}`, statfs(folder));
    const free = bavail * bsize;
    const facts = { folder, freeBytes: free, totalBytes: blocks * bsize, freeInodes: files > 0 ? ffree : null };
    const room = `${bytes(free)} free in ${folder} (${what})`;
    // btrfs and others count no inodes.
    const few = (most: number) => files > 0 && ffree < most;
    if (free < NONE.bytes || few(NONE.inodes)) {
      const full = free < NONE.bytes ? room : `no file can be created in ${folder} (${what}): it is out of inodes`;
      return faulty(isNeeded ? 'problem' : 'warning', 'Disk', id, `the disk is full: ${full}`, cure, facts);
    }
    if (free < LITTLE.bytes) return faulty('warning', 'Disk', id, `little space: ${room}`, cure, facts);
    if (few(LITTLE.inodes)) {
      const text = `room for only ${ffree} more files in ${folder} (${what})`;
      return faulty('warning', 'Disk', id, text, cure, facts);
    }
    return ok('Disk', id, room, facts);
  } catch (error) {
    return faulty('warning', 'Disk', id, `${folder} (${what}): ${(error as Error).message}`, `df -h ${folder}`, {
      folder,
    });
  }
}
