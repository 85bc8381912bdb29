/**
 * What a terminal showed before someone reattached to it.
 *
 * Invariant: old output contains no queries. Programs query terminals for their type and cursor position; if replayed, our
 * terminal would answer, and the answers would be typed into what runs there now.
 */
import type { Sandbox } from '../../sandbox';

/** Enough for a screen of any size, and quickly shown. */
const SHOWN_BYTES = 64 * 1024;

/** Queries for type, cursor, modes, sizes, colours and keyboards, and everything that begins with `DCS`. */
const QUERIES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: queries begin with one.
  /\x1b\[[<-?]?[\d;]*(?:[cntx]|\$p)|\x1b\[\?u|\x1b\[>\d*q|\x1bZ|\x05|\x1b\][^\x07\x1b]*\?(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\/g;

/** The end of the old output without queries, then the new output. */
export async function* pastAndPresent(sandbox: Sandbox, execId: string): AsyncGenerator<Uint8Array, undefined> {
  const process = await sandbox.process(execId);
  const { chunks } = await process.read({ maxChunks: 2 ** 32 - 1 });
  const last = chunks.at(-1)?.seq ?? 0;
  const past = Buffer.concat(chunks.map(({ data }) => data)).subarray(-SHOWN_BYTES);
  if (past.length > 0) yield Buffer.from(past.toString('latin1').replace(QUERIES, ''), 'latin1');
  for await (const { seq, data } of process) if (seq > last) yield data;
}
