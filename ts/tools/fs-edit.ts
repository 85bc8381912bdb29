/** `sandbox_fs_edit`. */
import { z } from 'zod';
import type { Files } from '../files';
import { defineTool, inSession, sessionAliases, type ToolCall } from './definition';
import { checkSize } from './fs-write';
import { inReached } from './reached';

export const fsEditTool = defineTool({
  name: 'sandbox_fs_edit',
  description:
    'Put new text in the place of old text in a file. The old text must be in the file exactly as given, and just once unless replace_all is true: give enough of the lines around it.',
  input: {
    path: z.string().describe('Absolute, or relative to the working directory'),
    old_text: z.string().min(1).describe('The text that is there now, with its spaces and line ends'),
    new_text: z.string().describe('The text to put there; "" deletes'),
    replace_all: z.boolean().optional().describe('In all places'),
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

/** Against the context's `maxFileBytes`: as long as the file could become. */
async function checkGrowth(files: Files, path: string, texts: [string, string], all: boolean, call: ToolCall) {
  if (call.context.maxFileBytes === undefined) return;
  const before = (await files.stat(path))?.sizeBytes ?? 0;
  const [old, next] = texts.map((text) => Buffer.byteLength(text)) as [number, number];
  const places = all ? Math.floor(before / old) : 1;
  if (next > old) checkSize(before + places * (next - old), call);
}
