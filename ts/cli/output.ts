/** What a command in a sandbox prints, carried to our own streams byte by byte, as fast as they are read. */
import { once } from 'node:events';
import type { OutputChunk } from '../options';

/** Resolves when there is room for more: who reads us slowly slows the command, and nothing piles up here. */
export async function carry({ stream, data }: Pick<OutputChunk, 'stream' | 'data'>): Promise<void> {
  const output = stream === 'stdout' ? process.stdout : process.stderr;
  if (output.write(data)) return;
  await once(output, 'drain').catch((error: NodeJS.ErrnoException) => {
    // Whoever cares that nobody reads any more is told by the signal of `stop.ts`.
    if (error.code !== 'EPIPE') throw error;
  });
}

/** A chunk for programs. Bytes that are no text are there as they are, too. */
export function chunkJson({ seq, stream, data, text }: OutputChunk) {
  const isText = Buffer.from(text).equals(data);
  return { seq, stream, text, ...(isText ? {} : { base64: Buffer.from(data).toString('base64') }) };
}
