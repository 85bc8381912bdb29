/** `sandbox_fs_read`. */
import { z } from 'zod';
import type { Sandbox } from '../sandbox';
import { alsoCalled } from './also-called';
import { defineTool, inSession, sessionAliases, type ToolCall } from './definition';
import { asExactText, asText, excerpt, spliced, wholeCharacters } from './excerpt';
import { HintedError } from './failure';
import { inReached } from './reached';

const MAX_READ = 2 ** 31;

/** Lines are counted in the sandbox; this limits what is transferred. */
const MAX_LINES_BYTES = 8 * 1024 * 1024;

interface ReadInput {
  path: string;
  encoding?: 'text' | 'base64';
  from_line?: number;
  to_line?: number;
  offset?: number;
  max_bytes?: number;
}

export const fsReadTool = defineTool({
  name: 'sandbox_fs_read',
  description:
    'Read a file of the sandbox. A long file is shortened to its start and end: read the rest by lines (from_line, to_line) or bytes (offset, max_bytes). ' +
    'Files that are not text are returned as base64.',
  input: {
    path: z.string().describe('Absolute, or relative to the working directory'),
    encoding: z.enum(['text', 'base64']).optional().describe('How to return the content (default: by its type)'),
    from_line: z.int().min(1).max(MAX_READ).optional().describe('First line to read, starting at 1'),
    to_line: z.int().min(1).max(MAX_READ).optional().describe('Last line to read'),
    offset: z.int().min(0).max(Number.MAX_SAFE_INTEGER).optional().describe('First byte to read'),
    max_bytes: z.int().min(1).max(MAX_READ).optional().describe('Maximum number of bytes to read'),
    ...inSession,
  },
  aliases: sessionAliases,
  output: {
    path: z.string().describe('Absolute'),
    content: z.string(),
    encoding: z.enum(['text', 'base64']),
    truncated: z.boolean().describe('Whether the content is incomplete'),
    size_bytes: z.number().describe('Of the whole file'),
  },
  async run(input, call) {
    return inReached(call, input.sandbox_id, async (sandbox) => {
      const isByLine = input.from_line !== undefined || input.to_line !== undefined;
      const [path, read] = await atOnce(
        absolute(sandbox, input.path),
        isByLine ? readLines(sandbox, input, call) : readBytes(sandbox, input, call),
      );
      const other = read.encoding === 'base64' ? 'contents_b64' : 'contents';
      return alsoCalled({ path, ...read }, { [other]: 'content' });
    });
  },
});

async function readLines(sandbox: Sandbox, { path, from_line, to_line }: ReadInput, { maxBytes, signal }: ToolCall) {
  if (from_line !== undefined && to_line !== undefined && to_line < from_line) {
    const message = `to_line ${to_line} is before from_line ${from_line}`;
    throw new HintedError('INVALID_ARGUMENT', message, 'Pass the first line as from_line and the last one as to_line.');
  }
  const range = { fromLine: from_line, toLine: to_line };
  const [lines, { sizeBytes }] = await atOnce(
    sandbox.files.readText(path, { ...range, maxBytes: MAX_LINES_BYTES, signal }),
    sandbox.files.read(path, { maxBytes: 0, signal }),
  );
  const { text, truncated } = excerpt(lines, maxBytes);
  const tooLong = truncated && 'These lines are too long to show. Read fewer lines.';
  const note = tooLong || (text === '' && 'The file has no such lines.');
  return { content: text, encoding: 'text', truncated, size_bytes: sizeBytes, ...(note && { note }) };
}

async function readBytes(sandbox: Sandbox, input: ReadInput, call: ToolCall) {
  const { path, offset = 0, encoding } = input;
  const isPart = input.offset !== undefined || input.max_bytes !== undefined;
  const maxBytes = Math.min(input.max_bytes ?? call.maxBytes, call.maxBytes);
  const { bytes, truncated, sizeBytes } = await sandbox.files.read(path, { offset, maxBytes, signal: call.signal });
  const whole = truncated ? wholeCharacters(bytes, 'at the end') : bytes;
  const from = offset === 0 ? whole : wholeCharacters(whole, 'at the start');
  const text = encoding === 'base64' ? undefined : encoding === 'text' ? asText(from) : asExactText(from);
  const facts = { truncated, size_bytes: sizeBytes };
  if (text === undefined) return { ...asBase64(bytes, offset, truncated, call.maxBytes), size_bytes: sizeBytes };
  if (truncated && !isPart) return { ...(await headAndTail(sandbox, path, bytes, sizeBytes, call)), ...facts };
  const note = truncated && `Continue with offset ${offset + whole.length}.`;
  return { content: text, encoding: 'text', ...facts, ...(note && { note }) };
}

/** Base64 has four letters for three bytes, so fewer bytes fit. */
function asBase64(bytes: Uint8Array, offset: number, isCut: boolean, maxBytes: number) {
  const shown = bytes.subarray(0, Math.floor((maxBytes * 3) / 4));
  const truncated = isCut || shown.length < bytes.length;
  const note = `Continue with offset ${offset + shown.length}.`;
  return { content: Buffer.from(shown).toString('base64'), encoding: 'base64', truncated, ...(truncated && { note }) };
}

async function headAndTail(sandbox: Sandbox, path: string, bytes: Uint8Array, sizeBytes: number, call: ToolCall) {
  const half = Math.floor((call.maxBytes - 60) / 2);
  const { bytes: tail } = await sandbox.files.read(path, {
    offset: sizeBytes - half,
    maxBytes: half,
    signal: call.signal,
  });
  const head = bytes.subarray(0, half);
  const content = spliced(head, tail, sizeBytes);
  const note = `The middle is left out. Read it with from_line and to_line, or with offset ${half}.`;
  return { content, encoding: 'text', note };
}

/** Sends both requests at once: one round trip. An error of `second` comes first. */
async function atOnce<A, B>(first: Promise<A>, second: Promise<B>): Promise<[A, B]> {
  first.catch(() => {});
  const result = await second;
  return [await first, result];
}

/** The absolute path as the sandbox writes it, with links unresolved. */
async function absolute(sandbox: Sandbox, path: string): Promise<string> {
  return (await sandbox.files.stat(path))?.path ?? path;
}
