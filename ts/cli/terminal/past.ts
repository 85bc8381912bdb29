/**
 * What a terminal showed before somebody comes back to it.
 *
 * Invariant: the past asks nothing. Programs ask terminals what they are and where the cursor is; asked again, ours would
 * answer, and the answers would be typed into whatever runs there now.
 */
import type { Sandbox } from '../../sandbox';

/** Enough for a screen of any size, and soon shown. */
const SHOWN_BYTES = 64 * 1024;

/** What it is, where its cursor is, which modes, sizes, colours and keyboards it has, and all that begins with `DCS`. */
const QUESTIONS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: by these, terminals are asked.
  /\x1b\[[<-?]?[\d;]*(?:[cntx]|\$p)|\x1b\[\?u|\x1b\[>\d*q|\x1bZ|\x05|\x1b\][^\x07\x1b]*\?(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\/g;

/** The end of what a terminal showed, without its questions, and then what it shows. */
export async function* pastAndPresent(sandbox: Sandbox, execId: string): AsyncGenerator<Uint8Array, undefined> {
  const process = await sandbox.process(execId);
  const { chunks } = await process.read({ maxChunks: 2 ** 32 - 1 });
  const last = chunks.at(-1)?.seq ?? 0;
  const past = Buffer.concat(chunks.map(({ data }) => data)).subarray(-SHOWN_BYTES);
  if (past.length > 0) yield Buffer.from(past.toString('latin1').replace(QUESTIONS, ''), 'latin1');
  for await (const { seq, data } of process) if (seq > last) yield data;
}
