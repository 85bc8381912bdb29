/**
 * Writes the files that a run returned into a folder of the host.
 *
 * Invariant: the code that made them is not trusted. Whatever their names and the links in the folder, nothing is written
 * outside of it, and nothing that exists is replaced without --force.
 */
import { mkdir, realpath, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Artifact } from '../options';
import { inWords } from './words';

export interface Written {
  /** Relative to the workdir. */
  path: string;
  sizeBytes: number;
  /** Where it is now; `null` if it was omitted. */
  file: string | null;
  omitted?: string;
}

export async function writeArtifacts(
  artifacts: readonly Artifact[],
  folder: string,
  existing: 'keep' | 'replace',
): Promise<Written[]> {
  const written: Written[] = [];
  for (const { path: name, sizeBytes, content, omitted } of artifacts) {
    const outcome = content ? await write(folder, name, content, existing) : { omitted: omitted ?? 'not returned' };
    written.push({ path: name, sizeBytes, file: null, ...outcome });
  }
  return written;
}

async function write(folder: string, name: string, content: Uint8Array, existing: 'keep' | 'replace') {
  const parts = name.split('/');
  if (path.isAbsolute(name) || parts.some((part) => part === '..' || part === '' || /[\\\0]/.test(part))) {
    return { omitted: 'its name leads out of the folder' };
  }
  try {
    await mkdir(folder, { recursive: true });
    const root = await realpath(folder);
    const parent = await parentWithin(root, parts.slice(0, -1));
    if (parent === undefined) return { omitted: 'a link in the folder leads out of it' };
    const file = path.join(parent, parts.at(-1) as string);
    // Exclusive: never through a link.
    if (existing === 'keep') await writeFile(file, content, { flag: 'wx' });
    else await replace(file, content);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return { omitted: 'the file already exists; --force replaces it' };
    if (code === 'EISDIR' || code === 'ENOTEMPTY') return { omitted: 'a folder of this name exists' };
    // An error for one file does not affect the others.
    const message = inWords(error);
    if (message === undefined) throw error;
    return { omitted: message };
  }
  return { file: path.join(folder, name) };
}

/** Creates the folders on the way, one by one; undefined if one of them is a link. */
async function parentWithin(root: string, parts: readonly string[]): Promise<string | undefined> {
  let at = root;
  for (const part of parts) {
    at = path.join(at, part);
    await mkdir(at).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    if ((await realpath(at).catch(() => undefined)) !== at) return undefined;
  }
  return at;
}

/** Atomic. Replaces a link itself, not its target. */
async function replace(file: string, content: Uint8Array): Promise<void> {
  const draft = `${file}.${process.pid}.part`;
  try {
    await writeFile(draft, content, { flag: 'wx' });
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
