// The table at the end: a line per consumer, with what it ran on, how it went and how long it took.

import { seconds } from '../steps.mjs';

export function table(rows) {
  const cells = rows.map(({ name, version, failure, tookMs }) => [
    name,
    version,
    failure ? '✗ failed' : '✓',
    seconds(tookMs),
  ]);
  const lines = [['consumer', 'version', 'result', 'wall time'], ...cells];
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const text = lines.map((line) => `| ${line.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`);
  text.splice(1, 0, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`);
  return text.join('\n');
}

export function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}
