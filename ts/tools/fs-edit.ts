/** `sandbox_fs_edit`. */
import { z } from 'zod';
import type { Files } from '../files';
import { defineTool, inSession, sessionAliases, type ToolCall } from './definition';
import { checkSize } from './fs-write';
import { inReached } from './reached';

export const fsEditTool = defineTool({
  name: 'sandbox_fs_edit',
  description:
    'Replace text in a file. The old text must match the file exactly, and occur only once unless replace_all is true: include enough of the surrounding lines.',
  input: {
    path: z.string().describe('Absolute, or relative to the working directory'),
    old_text: z.string().min(1).describe('The current text, with its exact whitespace and line endings'),
    new_text: z.string().describe('The replacement; "" deletes the text'),
    replace_all: z.boolean().optional().describe('Replace all occurrences'),
    ...inSession,
  },
  aliases: sessionAliases,
  output: { path: z.string().describe('Absolute'), replacements: z.number() },
  async run({ path, old_text, new_text, replace_all = false, sandbox_id }, call) {
    return inReached(call, sandbox_id, async ({ files }) => {
      await checkGrowth(files, path, [old_text, new_text], replace_all, call);
      const done = await files.replace(path, old_text, new_text, { all: replace_all, signal: call.signal });
      return { ok: true, path: done.path, replacements: done.replacements };
    });
  },
});

/** Checks the largest size that the file could get against `maxFileBytes`. */
async function checkGrowth(files: Files, path: string, texts: [string, string], all: boolean, call: ToolCall) {
  if (call.context.maxFileBytes === undefined) return;
  const before = (await files.stat(path))?.sizeBytes ?? 0;
  const [old, next] = texts.map((text) => Buffer.byteLength(text)) as [number, number];
  const places = all ? Math.floor(before / old) : 1;
  if (next > old) checkSize(before + places * (next - old), call);
}
