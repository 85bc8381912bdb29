// The steps of a command as a person sees them: a title, the time each took, and a summary at the end. Steps of all commands
// of one `.ci/run` are also written to the file that COFFERDAM_STEPS names.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { run } from './child.mjs';
import { Unavailable } from './unavailable.mjs';

export class Steps {
  #finished = [];
  #began = Date.now();
  #command;

  /** @param {string} [command] which command they are of, for the table of all */
  constructor(command = process.env.npm_lifecycle_event ?? '') {
    this.#command = command;
  }

  /** Runs a program as a step; its output is shown as it comes. */
  run(title, program, args, options) {
    console.log(`\n▶ ${title}`);
    return this.time(title, () => run(program, args, options));
  }

  /** Runs a program beside other steps: its output is shown in one piece, when it has ended. */
  beside(title, program, args, options) {
    console.log(`\n▶ ${title}, beside what follows`);
    const work = () => run(program, args, { ...options, output: 'hold' });
    return this.time(title, () => work().finally(() => console.log(`\n▲ ${title}`)));
  }

  /** Times any work as a step; an error names the step that broke. */
  async time(title, work) {
    const began = Date.now();
    const finish = (failed) => {
      const step = { command: this.#command, title, began, took: Date.now() - began, failed };
      if (!failed) this.#finished.push(step);
      if (process.env.COFFERDAM_STEPS) appendFileSync(process.env.COFFERDAM_STEPS, `${JSON.stringify(step)}\n`);
    };
    try {
      const result = await work();
      finish(false);
      return result;
    } catch (error) {
      finish(true);
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

/** All steps in `file` as a table: when each began, how long it took. Steps overlap, so that they add up to more than the end. */
export function timetable(file, began) {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n').filter(Boolean) : [];
  const steps = lines.map((line) => JSON.parse(line)).sort((a, b) => a.began - b.began);
  const rows = [
    ['command', 'step', 'began', 'took', ''],
    ...steps.map((step) => [
      step.command,
      step.title,
      seconds(step.began - began),
      seconds(step.took),
      step.failed ? '✗ failed' : '',
    ]),
    ['', 'in all', '', seconds(Date.now() - began), ''],
  ];
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const cell = (text, column) =>
    column === 2 || column === 3 ? text.padStart(widths[column]) : text.padEnd(widths[column]);
  return rows.map((row) => `  ${row.map(cell).join('  ')}`.trimEnd()).join('\n');
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
