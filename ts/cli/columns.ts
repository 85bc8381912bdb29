/**
 * Text measured in the columns of a terminal: wide characters take two, combining marks and colours none.
 *
 * Node counts them with its own Unicode tables, as for its prompts. Only `readline` makes that function public.
 */
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';

// Reads nothing: only its cursor position after a text is used.
const ruler = createInterface({ input: new PassThrough() });

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one.
const COLOUR = /(\x1b\[[\d;]*m)/;

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** How many columns a line takes. */
export function columnsOf(line: string): number {
  ruler.setPrompt(line);
  return ruler.getCursorPos().cols;
}

/** As much of a line as fits, with all its colours. A character that fits in part is left out. */
export function clip(line: string, columns: number): string {
  let room = columns;
  const clipped = line.split(COLOUR).map((part, index) => (index % 2 === 1 ? part : fitting(part)));
  return clipped.join('');

  function fitting(text: string): string {
    let shown = '';
    for (const { segment } of graphemes.segment(text)) {
      const width = columnsOf(segment);
      // A narrower character after it must not take its place.
      if (width > room) room = 0;
      if (room === 0) break;
      shown += segment;
      room -= width;
    }
    return shown;
  }
}

/** Same as {@link clip}, with `…` in place of what does not fit. */
export function ellipsized(line: string, columns: number): string {
  return columnsOf(line) <= columns ? line : `${clip(line, columns - 1)}…`;
}

/** Filled with spaces at the end. */
export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - columnsOf(text)));
}
