/** A path in a sandbox as a URI, and back: `/workspace/a b.txt` is `sandbox:///workspace/a%20b.txt`. */
import { posix } from 'node:path';
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js';
import { ProtocolError } from './protocol-error';

const PREFIX = 'sandbox:///';

/** For any absolute path without its first slash. */
export const URI_TEMPLATE = `${PREFIX}{+path}`;

export function toUri(path: string): string {
  return PREFIX + path.split('/').slice(1).map(encodeURIComponent).join('/');
}

/** Absolute and without dots; how else it may not lead out of the sandbox is the sandbox's own business. */
export function toPath(uri: string): string {
  try {
    if (uri.startsWith(PREFIX)) return posix.normalize(`/${decodeURIComponent(uri.slice(PREFIX.length))}`);
  } catch {
    // Not a URI: it has a % without two digits.
  }
  const message = `${JSON.stringify(uri)} is no file of the sandbox; write ${PREFIX} and the path, as in ${PREFIX}workspace/main.py`;
  throw new ProtocolError(ErrorCode.InvalidParams, message, { uri });
}
