/**
 * A table that is redrawn in place.
 *
 * Invariant: it never takes more lines than the terminal has, and no line wraps, so that its first line is known. The cursor
 * is shown again when the program ends.
 */
import { clip } from './columns';

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
    // Some terminals rewrap lines on a resize: then only the top is a known position.
    const isNewSize = this.#lines > 0 && columns !== this.#columns;
    const back = isNewSize ? '\x1b[2J\x1b[H' : this.#lines > 0 ? `\x1b[${this.#lines}A\r` : '';
    // Clears the rest of longer lines, and of more lines.
    process.stdout.write(`${back}${shown.map((line) => `${clip(line, columns - 1)}\x1b[K\n`).join('')}\x1b[J`);
    this.#lines = shown.length;
    this.#columns = columns;
  }

  /** Leaves the last table, without the echo of the key that ended it. */
  end(): void {
    process.removeListener('exit', this.#showCursor);
    process.stdout.write(`\r\x1b[K${SHOW}`);
  }
}
