/** What progress is drawn on: a terminal, or a test's replacement. */

/** Often enough for people, rarely enough for slow links. */
export const REDRAW_MS = 80;

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}
