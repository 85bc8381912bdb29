/**
 * Shortens text for a model: head and tail, with a note between them.
 *
 * Invariant: an excerpt never exceeds its limit in bytes, and never cuts a character.
 */

/** The default limit of one stream or file in a result. */
export const MAX_RESULT_BYTES = 64 * 1024;

/** Below this, the note itself would take up too much of the limit. */
export const LEAST_RESULT_BYTES = 100;

/** Space reserved for the note. */
const NOTE_BYTES = 60;

export interface Excerpt {
  text: string;
  truncated: boolean;
}

/** `text` if it fits, otherwise its head and tail. */
export function excerpt(text: string, maxBytes: number): Excerpt {
  // No character has more than three bytes per UTF-16 unit.
  if (text.length * 3 <= maxBytes) return { text, truncated: false };
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return { text, truncated: false };
  const half = Math.floor((maxBytes - NOTE_BYTES) / 2);
  return { text: spliced(bytes.subarray(0, half), bytes.subarray(-half), bytes.length), truncated: true };
}

/** Head and tail of a longer text, with a note between them. */
export function spliced(head: Uint8Array, tail: Uint8Array, totalBytes: number): string {
  const start = wholeCharacters(head, 'at the end');
  const end = wholeCharacters(tail, 'at the start');
  const lost = totalBytes - start.length - end.length;
  return `${asText(start)}\n[… ${lost} bytes left out …]\n${asText(end)}`;
}

/** Removes a partial character where the bytes were cut. Bytes that are not UTF-8 stay as they are. */
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

/** Decodes UTF-8; invalid bytes are replaced. */
export function asText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** Decodes UTF-8; `undefined` if the bytes are not UTF-8. */
export function asExactText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
