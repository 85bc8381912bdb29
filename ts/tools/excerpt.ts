/**
 * How much of a text a model is shown: head and tail, with a note between them.
 *
 * Invariant: an excerpt has at most the bytes it is allowed, and never half a character.
 */

/** What one stream or file may have in a result unless told. */
export const MAX_RESULT_BYTES = 64 * 1024;

/** Below this, the note on what was left out would itself leave out too much. */
export const LEAST_RESULT_BYTES = 100;

/** As much as the note may have. */
const NOTE_BYTES = 60;

export interface Excerpt {
  text: string;
  truncated: boolean;
}

/** `text` if it fits; otherwise its head and its tail. */
export function excerpt(text: string, maxBytes: number): Excerpt {
  // No character has more than three bytes per UTF-16 unit.
  if (text.length * 3 <= maxBytes) return { text, truncated: false };
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return { text, truncated: false };
  const half = Math.floor((maxBytes - NOTE_BYTES) / 2);
  return { text: spliced(bytes.subarray(0, half), bytes.subarray(-half), bytes.length), truncated: true };
}

/** The head and the tail of something longer, with a note between them. */
export function spliced(head: Uint8Array, tail: Uint8Array, totalBytes: number): string {
  const start = wholeCharacters(head, 'at the end');
  const end = wholeCharacters(tail, 'at the start');
  const lost = totalBytes - start.length - end.length;
  return `${asText(start)}\n[… ${lost} bytes left out …]\n${asText(end)}`;
}

/** The bytes without half a character where they were cut. Bytes that are no UTF-8 at all stay as they are. */
export function wholeCharacters(bytes: Uint8Array, cut: 'at the start' | 'at the end'): Uint8Array {
  const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0b1100_0000) === 0b1000_0000;
  if (cut === 'at the start') {
    let start = 0;
    while (start < 3 && isContinuation(bytes[start])) start += 1;
    return bytes.subarray(start);
  }
  let lead = bytes.length - 1;
  while (lead > bytes.length - 4 && isContinuation(bytes[lead])) lead -= 1;
  const first = bytes[lead] ?? 0;
  const length = first >= 0b1111_0000 ? 4 : first >= 0b1110_0000 ? 3 : first >= 0b1100_0000 ? 2 : 1;
  return lead + length > bytes.length ? bytes.subarray(0, Math.max(lead, 0)) : bytes;
}

/** As text; what is not UTF-8 is replaced. */
export function asText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** As text, if it is UTF-8. */
export function asExactText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
