/** `sandbox_stage_file` and `sandbox_publish_file`: between the manager's object store and a sandbox. */
import { posix } from 'node:path';
import { z } from 'zod';
import { defineTool, inSession, sessionAliases } from './definition';
import { hinting } from './failure';
import { inReached } from './reached';

const key = z.string().min(1).max(1024);

const notStored = hinting(
  'FILE_NOT_FOUND',
  'Use a key from the user or from sandbox_publish_file.',
  'nothing is stored under this key',
);

export const stageTool = defineTool({
  name: 'sandbox_stage_file',
  kind: 'store',
  description:
    'Copy a stored file into the sandbox, by its key. Use it for files that are too large to write, or that a user uploaded.',
  input: {
    key: key.describe('Such as files/f_123, from the user or from sandbox_publish_file'),
    path: z.string().optional().describe('Where to put it (default: under its own name in the working directory)'),
    ...inSession,
  },
  aliases: { file_key: 'key', file_id: 'key', destination: 'path', ...sessionAliases },
  output: { key: z.string(), path: z.string().describe('Absolute'), size_bytes: z.number(), sha256: z.string() },
  async run({ key, path = posix.basename(key), sandbox_id }, call) {
    return inReached(call, sandbox_id, async (sandbox) => {
      call.sessions.count(sandbox, posix.resolve(sandbox.workdir, path));
      const { maxFileBytes } = call.context;
      const options = { signal: call.signal, ...(maxFileBytes !== undefined && { maxBytes: maxFileBytes }) };
      const staged = await sandbox.stage(key, path, options).catch(notStored);
      return { ok: true, key, path: staged.path, size_bytes: staged.sizeBytes, sha256: staged.sha256 };
    });
  },
});

export const publishTool = defineTool({
  name: 'sandbox_publish_file',
  kind: 'store',
  description: 'Store a file of the sandbox, so that it can be downloaded or used in another sandbox. Returns its key.',
  input: {
    path: z.string().describe('Absolute, or relative to the working directory'),
    key: key.optional().describe('The key to store it under (default: a new one)'),
    ...inSession,
  },
  aliases: { file_key: 'key', source: 'path', ...sessionAliases },
  output: { key: z.string(), path: z.string(), size_bytes: z.number(), sha256: z.string() },
  async run({ path, key, sandbox_id }, call) {
    return inReached(call, sandbox_id, async (sandbox) => {
      const stored = await sandbox.publish(path, key, { signal: call.signal });
      const absolute = posix.resolve(sandbox.workdir, path);
      return { ok: true, key: stored.key, path: absolute, size_bytes: stored.sizeBytes, sha256: stored.sha256 };
    });
  },
});
