// The steps of a command as a person sees them: a title, the time each took, and a summary at the end.

import { run } from './child.mjs';
import { Unavailable } from './unavailable.mjs';

export class Steps {
  #finished = [];
  #began = Date.now();

  /** Runs a program as a step; its output is shown as it comes. */
  run(title, program, args, options) {
    console.log(`\n▶ ${title}`);
    return this.time(title, () => run(program, args, options));
  }

  /** Times any work as a step; an error names the step that broke. */
  async time(title, work) {
    const began = Date.now();
    try {
      const result = await work();
      this.#finished.push({ title, took: Date.now() - began });
      return result;
    } catch (error) {
      if (!(error instanceof Unavailable)) error.message = `${title}: ${error.message}`;
      throw error;
    }
  }

  summary() {
    const rows = [...this.#finished, { title: 'in all', took: Date.now() - this.#began }];
    const width = Math.max(...rows.map(({ title }) => title.length));
    return rows.map(({ title, took }) => `  ${title.padEnd(width)}  ${seconds(took).padStart(8)}`).join('\n');
  }
}

export function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Text in a frame that nobody overlooks in a long log. */
export function boxed(text) {
  const lines = text.split('\n');
  const width = Math.max(...lines.map((line) => line.length));
  const edge = '═'.repeat(width + 2);
  return [`╔${edge}╗`, ...lines.map((line) => `║ ${line.padEnd(width)} ║`), `╚${edge}╝`].join('\n');
}
