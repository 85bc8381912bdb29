/** A path in a sandbox as a URI, and back: `/workspace/a b.txt` is `sandbox:///workspace/a%20b.txt`. */
import { posix } from 'node:path';
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js';
import { ProtocolError } from './protocol-error';

const PREFIX = 'sandbox:///';

/** Takes any absolute path without its first slash. */
export const URI_TEMPLATE = `${PREFIX}{+path}`;

export function toUri(path: string): string {
  return PREFIX + path.split('/').slice(1).map(encodeURIComponent).join('/');
}

/** An absolute path without dots. The sandbox itself keeps paths inside. */
export function toPath(uri: string): string {
  try {
    if (uri.startsWith(PREFIX)) return posix.normalize(`/${decodeURIComponent(uri.slice(PREFIX.length))}`);
  } catch {
    // Not a URI: a % without two digits.
  }
  const message = `${JSON.stringify(uri)} is not a file of the sandbox; use ${PREFIX} and the path, as in ${PREFIX}workspace/main.py`;
  throw new ProtocolError(ErrorCode.InvalidParams, message, { uri });
}
