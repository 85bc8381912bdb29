/** A progress line that is overwritten, and cleared at the end. Only on a terminal. */
import { clip } from './columns';
import { paint } from './print';
import { REDRAW_MS, type Screen } from './screen';

export class ProgressLine {
  readonly #screen: Screen;
  #drawnAt = 0;
  #isDrawn = false;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  show(line: string): void {
    const now = performance.now();
    if (!this.#screen.isTTY || now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    this.#isDrawn = true;
    this.#screen.write(`\r\x1b[K${paint('dim', clip(line, (this.#screen.columns || 80) - 1), this.#screen)}`);
  }

  finish(): void {
    if (this.#isDrawn) this.#screen.write('\r\x1b[K');
    this.#isDrawn = false;
  }
}
