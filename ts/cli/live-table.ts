/**
 * A table that is drawn over itself, in place.
 *
 * Invariant: it never takes more lines than the terminal has, and none wraps or comes to where it would, so that it is known
 * where it began. The cursor is back when the program ends.
 */
const HIDE = '\x1b[?25l';
const SHOW = '\x1b[?25h';

export class LiveTable {
  readonly #showCursor = () => process.stdout.write(SHOW);
  #lines = 0;
  #columns = 0;

  constructor() {
    process.stdout.write(HIDE);
    process.on('exit', this.#showCursor);
  }

  draw(text: string): void {
    const { columns = 80, rows = 24 } = process.stdout;
    const all = text.split('\n');
    const room = Math.max(1, rows - 1);
    const shown = all.length <= room ? all : [...all.slice(0, room - 1), `… and ${all.length - room + 1} more`];
    // Terminals break lines anew when they become narrower, or do not: then only the top is a place that is known.
    const isNewSize = this.#lines > 0 && columns !== this.#columns;
    const back = isNewSize ? '\x1b[2J\x1b[H' : this.#lines > 0 ? `\x1b[${this.#lines}A\r` : '';
    // What is left of longer lines, and of more of them, goes.
    process.stdout.write(`${back}${shown.map((line) => `${cut(line, columns - 1)}\x1b[K\n`).join('')}\x1b[J`);
    this.#lines = shown.length;
    this.#columns = columns;
  }

  /** The last table stays, without the key that ended it. */
  end(): void {
    process.removeListener('exit', this.#showCursor);
    process.stdout.write(`\r\x1b[K${SHOW}`);
  }
}

/** So many characters as can be seen; colours are none. */
function cut(line: string, columns: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one.
  const parts = line.split(/(\x1b\[[\d;]*m)/);
  let room = columns;
  return parts
    .map((part, index) => {
      if (index % 2 === 1) return part;
      const seen = part.slice(0, room);
      room -= seen.length;
      return seen;
    })
    .join('');
}
