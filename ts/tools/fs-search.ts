/** `sandbox_fs_search`: finds files by name, or lines by content. */
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
    'Search the files of the sandbox: pattern finds lines that match a regular expression, glob finds files by name, both together find lines in such files. ' +
    'Files that .gitignore excludes are skipped.',
  input: {
    pattern: z
      .string()
      .min(1)
      .max(10_000)
      .optional()
      .describe('Regular expression (no look-around, no back-references)'),
    glob: z.string().min(1).optional().describe('File names or paths, such as "**/*.py"'),
    path: z.string().optional().describe('Directory or file to search (default: the working directory)'),
    literal: z.boolean().optional().describe('Treat pattern as plain text'),
    ignore_case: z.boolean().optional(),
    context_lines: z.int().min(0).max(20).optional().describe('Number of lines to show before and after each match'),
    max_results: z.int().min(1).max(1000).optional().describe(`Default: ${MAX_RESULTS}`),
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
      throw new HintedError('INVALID_ARGUMENT', 'pattern or glob: required', 'Pass pattern, glob, or both.');
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
  const note = 'There are more matches. Search a subdirectory, or use a more specific pattern.';
  return { truncated, ...(truncated && { note }) };
}

/** As many matches as fit into a result. */
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
