/** Text of files for AI SDK: in an encoding, by lines. */
import { SandboxError } from '../errors';

function unsupported(encoding: string): SandboxError {
  return new SandboxError('UNSUPPORTED', `encoding ${JSON.stringify(encoding)} is not supported; use "utf-8"`, {
    encoding,
  });
}

export function decode(bytes: Uint8Array, encoding: string): string {
  if (Buffer.isEncoding(encoding)) {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding);
  }
  return decoder(encoding).decode(bytes);
}

function decoder(encoding: string) {
  try {
    return new TextDecoder(encoding);
  } catch {
    throw unsupported(encoding);
  }
}

export function encode(text: string, encoding: string): Uint8Array {
  if (!Buffer.isEncoding(encoding)) throw unsupported(encoding);
  return Buffer.from(text, encoding);
}

/** Lines `start` to `end`, starting at 1, without the last line ending, as AI SDK does it. */
export function linesOf(text: string, start?: number, end?: number): string {
  if (start === undefined && end === undefined) return text;
  const lineEnd = ['\r\n', '\n', '\r'].find((candidate) => text.includes(candidate)) ?? '\n';
  return text
    .split(lineEnd)
    .slice(Math.max(1, start ?? 1) - 1, end)
    .join(lineEnd);
}
