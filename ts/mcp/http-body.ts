/** A request's body as JSON, within bounds, or what is wrong with it. */
import type { IncomingMessage } from 'node:http';

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;

export type Body = { json: unknown } | { problem: string; status: number; code: number };

export async function readJson(request: IncomingMessage, maxBytes: number): Promise<Body> {
  const tooLong = { problem: `the request has more than ${maxBytes} bytes`, status: 413, code: INVALID_REQUEST };
  if (Number(request.headers['content-length']) > maxBytes) return tooLong;
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > maxBytes) return tooLong;
    pieces.push(piece);
  }
  try {
    return { json: JSON.parse(Buffer.concat(pieces).toString()) };
  } catch {
    return { problem: 'the request is not JSON', status: 400, code: PARSE_ERROR };
  }
}
