/** Copies the output of a command in a sandbox to our own streams, byte for byte, as fast as they are read. */
import { once } from 'node:events';
import type { OutputChunk } from '../options';

/** Resolves when there is room for more: a slow reader slows the command, and nothing piles up here. */
export async function writeChunk({ stream, data }: Pick<OutputChunk, 'stream' | 'data'>): Promise<void> {
  const output = stream === 'stdout' ? process.stdout : process.stderr;
  if (output.write(data)) return;
  await once(output, 'drain').catch((error: NodeJS.ErrnoException) => {
    // `stop.ts` handles output that no one reads any more.
    if (error.code !== 'EPIPE') throw error;
  });
}

/** A chunk for programs; with the bytes in base64 if they are not UTF-8. */
export function chunkJson({ seq, stream, data, text }: OutputChunk) {
  const isText = Buffer.from(text).equals(data);
  return { seq, stream, text, ...(isText ? {} : { base64: Buffer.from(data).toString('base64') }) };
}
