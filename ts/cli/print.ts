/**
 * What a command prints: tables for people, JSON for programs.
 *
 * Invariant: colours only on terminals, and never with `NO_COLOR`; `FORCE_COLOR` forces them.
 */
import { columnsOf, padded } from './columns';
import type { Flags } from './command';

export const JSON_FLAG = {
  json: { type: 'boolean', about: 'Print JSON instead of text' },
} as const satisfies Flags;

const STYLES = { bold: '1', dim: '2', red: '31', green: '32', yellow: '33', cyan: '36' } as const;

export type Style = keyof typeof STYLES;

export function isColoured(stream: { readonly isTTY?: boolean }, environment = process.env): boolean {
  if (environment.NO_COLOR) return false;
  if (environment.FORCE_COLOR) return environment.FORCE_COLOR !== '0';
  return stream.isTTY === true && environment.TERM !== 'dumb';
}

export function paint(style: Style, text: string, stream: { readonly isTTY?: boolean } = process.stdout): string {
  return isColoured(stream) ? `\x1b[${STYLES[style]}m${text}\x1b[0m` : text;
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Prints one result; in a stream of results, each on one line. */
export function printJson(value: unknown, layout: 'document' | 'line' = 'document'): void {
  print(JSON.stringify(value, null, layout === 'document' ? 2 : undefined));
}

/** Rows under headings; the last column has no fixed width. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, column) =>
    Math.max(...[heading, ...rows.map((row) => row[column] ?? '')].map(columnsOf)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (column === cells.length - 1 ? cell : padded(cell, widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  return [paint('bold', line(headings)), ...rows.map(line)].join('\n');
}

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const step = count < 1 ? 0 : Math.min(Math.floor(Math.log2(count) / 10), units.length - 1);
  const scaled = count / 1024 ** step;
  return `${step === 0 || scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${units[step]}`;
}

/** A duration: `12 s`, `3 min`, `2 h`, `5 d`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}
