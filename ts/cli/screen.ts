/** What progress is drawn on: a terminal, or what only looks like one. */

/** Often enough for people, and seldom enough for slow links. */
export const REDRAW_MS = 80;

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

/** A line that wraps would be two, and the cursor would go back too little. */
export function clip(line: string, width: number): string {
  return [...line].slice(0, width).join('');
}
