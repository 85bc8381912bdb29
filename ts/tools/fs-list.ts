/** `sandbox_fs_list` and `sandbox_fs_delete`. */
import { posix } from 'node:path';
import { z } from 'zod';
import type { FileEntry } from '../files';
import { alsoCalled } from './also-called';
import { defineTool, inSession, sessionAliases } from './definition';
import { HintedError, hinting } from './failure';
import { inReached } from './reached';

/** How many entries a result shows. */
const MAX_ENTRIES = 500;

/** How many entries are counted. */
const MAX_LISTED = 20_000;

const tooMany = hinting(
  'LIMIT_EXCEEDED',
  'List a subdirectory, or use sandbox_fs_search with a glob.',
  `there are more than ${MAX_LISTED} entries`,
);

const isFolder = hinting('IS_A_DIRECTORY', 'Set recursive to true to delete a directory and everything in it.');

function keepWorkdir(workdir: string): Error {
  const hint = 'Delete its entries, by name or with a command.';
  return new HintedError(
    'INVALID_ARGUMENT',
    `the working directory, ${workdir}, cannot be deleted: commands run in it`,
    hint,
  );
}

export const entryShape = {
  name: z.string(),
  path: z.string().describe('Absolute'),
  type: z.enum(['file', 'dir', 'symlink', 'other']),
  size_bytes: z.number(),
  mode: z.string().describe('Permissions in octal'),
  mtime_unix: z.number().describe('Last change, in seconds since 1970'),
};

export const fsListTool = defineTool({
  name: 'sandbox_fs_list',
  description: 'List a directory of the sandbox. To find files by name or content use sandbox_fs_search.',
  input: {
    path: z.string().optional().describe('Default: the working directory'),
    recursive: z.boolean().optional().describe('Include all subdirectories'),
    ...inSession,
  },
  aliases: sessionAliases,
  output: { entries: z.array(z.looseObject(entryShape)), truncated: z.boolean(), total: z.number() },
  async run({ path = '.', recursive = false, sandbox_id }, call) {
    return inReached(call, sandbox_id, async ({ files }) => {
      const listed = await files.list(path, { recursive, maxEntries: MAX_LISTED }).catch(tooMany);
      const truncated = listed.length > MAX_ENTRIES;
      const note = `These are the first ${MAX_ENTRIES} of ${listed.length} entries. List a subdirectory, or use sandbox_fs_search with a pattern.`;
      return {
        entries: listed.slice(0, MAX_ENTRIES).map(toModelEntry),
        truncated,
        total: listed.length,
        ...(truncated && { note }),
      };
    });
  },
});

export function toModelEntry({ name, path, type, sizeBytes, mode, mtimeMs, target }: FileEntry): object {
  const entry = {
    name,
    path,
    type,
    size_bytes: sizeBytes,
    mode: mode.toString(8).padStart(4, '0'),
    mtime_unix: Math.floor(mtimeMs / 1000),
    ...(target !== undefined && { target }),
  };
  return alsoCalled(entry, { size: 'size_bytes' });
}

export const fsDeleteTool = defineTool({
  name: 'sandbox_fs_delete',
  description: 'Delete a file of the sandbox or, with recursive, a directory and everything in it.',
  input: {
    path: z.string().describe('Absolute, or relative to the working directory'),
    recursive: z.boolean().optional().describe('Required for a directory'),
    ...inSession,
  },
  aliases: sessionAliases,
  output: { deleted: z.boolean().describe('False if the path did not exist'), path: z.string().describe('Absolute') },
  async run({ path, recursive = false, sandbox_id }, call) {
    return inReached(call, sandbox_id, async ({ files, workdir }) => {
      const absolute = (await files.stat(path))?.path ?? posix.resolve(workdir, path);
      if (!posix.relative(absolute, workdir).startsWith('..')) throw keepWorkdir(workdir);
      const deleted = await files.remove(path, { recursive }).catch(isFolder);
      return { ok: true, deleted, path: absolute, ...(!deleted && { note: 'The path did not exist.' }) };
    });
  },
});
