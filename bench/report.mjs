// A run as text for people, and as JSON for programs.

import { LABELS } from './contestants/index.mjs';

const HIGHER_IS_BETTER = new Set(['exec/s', 'req/s', 'MB/s']);
const MARKS = { PASS: '✓ PASS', FAIL: '✗ FAIL' };

/** @param {import('./rows/index.mjs').Row[]} rows */
export function table(rows) {
  const ids = Object.keys(LABELS).filter((id) => rows.some(({ values }) => values[id]));
  const head = ['p50 / p95', 'unit', ...ids.map((id) => LABELS[id]), 'vs dockerode', 'vs docker CLI', 'vs host'];
  const body = rows.map((row) => [
    row.title,
    row.unit,
    ...ids.map((id) => cell(row.values[id])),
    advantage(row, 'dockerode'),
    advantage(row, 'docker-cli'),
    advantage(row, 'host'),
  ]);
  return `${aligned([head, ...body], 2)}\n"vs": how many times better ours is, by p50; below 1× the other is better.`;
}

/** @param {ReturnType<import('./targets.mjs').judge>} verdicts */
export function targetTable(verdicts) {
  const judged = verdicts.filter(({ verdict }) => verdict !== 'not measured');
  const open = verdicts.filter(({ verdict }) => verdict === 'not measured');
  const body = judged.map(({ row, says, shows, verdict }) => [MARKS[verdict], row, says, shows]);
  const rest = open.length > 0 ? `\nnot measured: ${[...new Set(open.map(({ row }) => row))].join(', ')}` : '';
  return `${aligned([['must show', 'row', 'target', 'measured'], ...body], 4)}${rest}`;
}

function advantage({ unit, values }, other) {
  if (!values[other] || !values.cofferdam) return '';
  const ratio = values[other].p50 / values.cofferdam.p50;
  const times = HIGHER_IS_BETTER.has(unit) ? 1 / ratio : ratio;
  return `${times >= 10 ? times.toFixed(0) : times.toFixed(2)}×`;
}

function cell(summary) {
  if (!summary) return '';
  return summary.count === 1 ? number(summary.p50) : `${number(summary.p50)} / ${number(summary.p95)}`;
}

/** Three digits that matter. */
export function number(value) {
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The first `left` columns to the left, the others to the right. */
function aligned(lines, left) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const text = lines.map((line) =>
    line
      .map((value, column) => (column < left ? value.padEnd(widths[column]) : value.padStart(widths[column])))
      .join('  ')
      .trimEnd(),
  );
  text.splice(1, 0, widths.map((width) => '─'.repeat(width)).join('  '));
  return text.join('\n');
}
