/**
 * Shows a pull: on a terminal a line per layer, redrawn in place; elsewhere a line per change of status.
 *
 * Invariant: on a terminal, the cursor is below all lines whenever others may write.
 */
import type { PullProgress } from '../options';
import { clip, padded } from './columns';
import { bytes } from './print';
import { REDRAW_MS, type Screen } from './screen';

const BAR = 24;

/** The final statuses of a layer. */
const DONE = /^(pull complete|already exists|download complete)$/i;

interface Layer {
  status: string;
  current: number;
  total: number;
}

export class PullDisplay {
  readonly #screen: Screen;
  readonly #layers = new Map<string, Layer>();
  #status = '';
  #drawn = 0;
  #drawnAt = 0;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  show({ layer: id, status, currentBytes, totalBytes }: PullProgress): void {
    // For the image as a whole, Docker gives the tag in place of a layer.
    const layer = /^pulling from /i.test(status) ? undefined : id;
    const before = layer === undefined ? this.#status : this.#layers.get(layer)?.status;
    if (layer === undefined) this.#status = status;
    else {
      const known = this.#layers.get(layer);
      // Unpacking counts from 0 again; what people wait for is the download.
      const total = Math.max(known?.total ?? 0, totalBytes ?? 0);
      const current = DONE.test(status) ? total : (currentBytes ?? known?.current ?? 0);
      this.#layers.set(layer, { status, total, current });
    }
    if (this.#screen.isTTY) this.#redraw(before !== status);
    else if (before !== status) this.#screen.write(layer === undefined ? `${status}\n` : `${layer}: ${status}\n`);
  }

  finish(): void {
    if (this.#screen.isTTY && this.#drawn > 0) this.#draw();
  }

  #redraw(isNews: boolean): void {
    const now = performance.now();
    if (!isNews && now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    this.#draw();
  }

  #draw(): void {
    const lines = this.#lines();
    const up = this.#drawn > 0 ? `\x1b[${this.#drawn}A` : '';
    // Clears lines that are no longer needed.
    this.#screen.write(`${up}\r\x1b[J${lines.map((line) => `${line}\n`).join('')}`);
    this.#drawn = lines.length;
  }

  #lines(): string[] {
    const width = (this.#screen.columns || 80) - 1;
    // The cursor cannot go back above the screen: finished layers make room first.
    const room = Math.max(1, (this.#screen.rows || 24) - 3);
    const layers = [...this.#layers];
    const busy = layers.length > room ? layers.filter(([, { status }]) => !DONE.test(status)) : layers;
    const lines = busy.slice(0, room).map(([name, layer]) => this.#line(name, layer));
    return (
      [...lines, this.#total(layers)]
        // A wrapped line would be two, and the cursor would go back too little.
        .map((line) => clip(line, width))
    );
  }

  #line(name: string, { status, current, total }: Layer): string {
    const label = `${padded(clip(name, 12), 12)}  ${padded(status, 18)}`;
    return total > 0 && !DONE.test(status)
      ? `${label} ${bar(current / total)} ${bytes(current)} of ${bytes(total)}`
      : label;
  }

  #total(layers: [string, Layer][]): string {
    if (layers.length === 0) return this.#status;
    const done = layers.filter(([, { status }]) => DONE.test(status)).length;
    const sum = (what: 'current' | 'total') => layers.reduce((all, [, layer]) => all + layer[what], 0);
    const carried = sum('total') > 0 ? `, ${bytes(sum('current'))} of ${bytes(sum('total'))}` : '';
    return `${done} of ${layers.length} layers${carried}`;
  }
}

function bar(part: number): string {
  const full = Math.round(Math.min(1, Math.max(0, part)) * BAR);
  return `[${'█'.repeat(full)}${'░'.repeat(BAR - full)}]`;
}
