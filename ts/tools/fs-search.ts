/** `sandbox_fs_search`: files by their names, or lines by what is in them. */
import { z } from 'zod';
import type { GrepMatch } from '../search';
import { defineTool, inSession, sessionAliases, type ToolCall } from './definition';
import { HintedError } from './failure';
import { entryShape, toModelEntry } from './fs-list';
import { inReached } from './reached';

const MAX_RESULTS = 100;

export const fsSearchTool = defineTool({
  name: 'sandbox_fs_search',
  description:
    'Search the files of the sandbox: with pattern for lines that match a regular expression, with glob for files by name, with both for lines in such files. ' +
    'What .gitignore names is left out.',
  input: {
    pattern: z
      .string()
      .min(1)
      .max(10_000)
      .optional()
      .describe('Regular expression (no look-around, no back-references)'),
    glob: z.string().min(1).optional().describe('Names or paths, such as "**/*.py"'),
    path: z.string().optional().describe('Folder or file to search; the working directory unless told'),
    literal: z.boolean().optional().describe('Take pattern as plain text'),
    ignore_case: z.boolean().optional(),
    context_lines: z.int().min(0).max(20).optional().describe('So many lines before and after each match'),
    max_results: z.int().min(1).max(1000).optional().describe(`${MAX_RESULTS} unless told`),
    ...inSession,
  },
  aliases: { query: 'pattern', include: 'glob', ...sessionAliases },
  output: {
    matches: z.array(z.looseObject({ path: z.string(), line: z.number(), column: z.number(), text: z.string() })),
    files: z.array(z.looseObject(entryShape)),
    truncated: z.boolean(),
    files_searched: z.number(),
  },
  async run(input, call) {
    const { pattern, glob, path = '.', max_results: most = MAX_RESULTS } = input;
    if (pattern === undefined && glob === undefined) {
      throw new HintedError('INVALID_ARGUMENT', 'pattern or glob: required', 'Give pattern, glob, or both.');
    }
    return inReached(call, input.sandbox_id, async ({ files }) => {
      const { signal } = call;
      if (pattern === undefined) {
        const found = await files.glob(glob as string, { path, maxResults: most, signal });
        return { files: found.entries.map(toModelEntry), ...truncation(found.truncated) };
      }
      const lines = input.context_lines ?? 0;
      const found = await files.grep(pattern, {
        path,
        ...(glob !== undefined && { include: glob }),
        literal: input.literal ?? false,
        ignoreCase: input.ignore_case ?? false,
        before: lines,
        after: lines,
        maxMatches: most,
        signal,
      });
      const { matches, isAll } = firstOf(found.matches, call);
      return { matches, files_searched: found.filesSearched, ...truncation(found.truncated || !isAll) };
    });
  },
});

function truncation(truncated: boolean) {
  const note = 'There is more. Search in a folder of it, or for something more special.';
  return { truncated, ...(truncated && { note }) };
}

/** As many as fit a result. */
function firstOf(found: GrepMatch[], { maxBytes }: ToolCall) {
  const matches: object[] = [];
  let left = maxBytes;
  for (const { path, line, column, text, before, after } of found) {
    left -= Buffer.byteLength([path, text, ...before, ...after].join('\n'));
    if (left < 0 && matches.length > 0) return { matches, isAll: false };
    const around = { ...(before.length > 0 && { before }), ...(after.length > 0 && { after }) };
    matches.push({ path, line, column, text, ...around });
  }
  return { matches, isAll: true };
}
