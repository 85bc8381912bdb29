/** `sandbox_fs_write`. */
import { posix } from 'node:path';
import { z } from 'zod';
import { defineTool, inSession, sessionAliases, type ToolCall } from './definition';
import { HintedError } from './failure';
import { inReached } from './reached';

export const fsWriteTool = defineTool({
  name: 'sandbox_fs_write',
  description:
    'Write a file in the sandbox. Creates missing parent directories and replaces an existing file. To change part of a file use sandbox_fs_edit.',
  input: {
    path: z.string().describe('Absolute, or relative to the working directory'),
    content: z.string().optional().describe('Required. The whole content'),
    encoding: z.enum(['text', 'base64']).optional().describe('Encoding of content (default: text)'),
    mode: z
      .string()
      .regex(/^(0o?)?[0-7]{3,4}$/, 'expected permissions in octal, such as "0755"')
      .optional()
      .describe('Permissions in octal, such as "0755"'),
    overwrite: z.boolean().optional().describe('Set to false to fail if the file exists (default: true)'),
    ...inSession,
  },
  hidden: { contents_b64: z.string().optional() },
  aliases: { contents: 'content', ...sessionAliases },
  output: { path: z.string().describe('Absolute'), size_bytes: z.number() },
  async run(input, call) {
    const { path, overwrite, mode } = input;
    const bytes = contentOf(input);
    checkSize(bytes.length, call);
    return inReached(call, input.sandbox_id, async (sandbox) => {
      call.sessions.count(sandbox, posix.resolve(sandbox.workdir, path));
      const written = await sandbox.files.write(path, bytes, {
        ...(mode !== undefined && { mode: Number.parseInt(mode.replace('o', ''), 8) }),
        ...(overwrite === false && { overwrite }),
        signal: call.signal,
      });
      return { ok: true, path: written.path, size_bytes: written.sizeBytes };
    });
  },
});

/** Accepts `content` with `encoding`, or `contents` and `contents_b64`. */
function contentOf(input: { content?: string; encoding?: 'text' | 'base64'; contents_b64?: string }): Uint8Array {
  const { content, contents_b64 } = input;
  if (content !== undefined && contents_b64 !== undefined) {
    throw new HintedError('INVALID_ARGUMENT', 'content and contents_b64 were both given', 'Pass one of them.');
  }
  if (contents_b64 !== undefined) return fromBase64('contents_b64', contents_b64);
  if (content === undefined) {
    const hint = 'Pass the whole content of the file as text. For an empty file, pass "".';
    throw new HintedError('INVALID_ARGUMENT', 'content: required', hint);
  }
  if (input.encoding === 'base64') return fromBase64('content', content);
  if (!content.isWellFormed()) {
    const hint = 'It contains half of a surrogate pair. Remove that, or write the bytes with encoding "base64".';
    throw new HintedError('INVALID_ARGUMENT', 'content: not well-formed Unicode', hint);
  }
  return Buffer.from(content);
}

function fromBase64(name: string, text: string): Uint8Array {
  const compact = text.replace(/[\r\n]/g, '');
  if (compact.length % 4 === 1 || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(compact)) {
    const hint = 'Encode the bytes again, or pass text with encoding "text".';
    throw new HintedError('INVALID_ARGUMENT', `${name}: not base64`, hint);
  }
  return Buffer.from(compact, 'base64');
}

/** Checks a size against `maxFileBytes`. */
export function checkSize(bytes: number, { context }: ToolCall): void {
  const { maxFileBytes } = context;
  if (maxFileBytes === undefined || bytes <= maxFileBytes) return;
  const message = `the file would have ${bytes} bytes, but at most ${maxFileBytes} are allowed`;
  throw new HintedError('LIMIT_EXCEEDED', message, 'Write less, or several smaller files.');
}
