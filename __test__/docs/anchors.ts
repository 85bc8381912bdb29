/** The places on a page that a link can name, as GitHub makes them. */
import { proseOf } from './pages';

/** Of a heading's text: lower case, without punctuation, hyphens for spaces. */
export function slug(heading: string): string {
  return heading
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll(/(^|[^\w])_(\S(?:.*?\S)?)_(?!\w)/g, '$1$2')
    .replaceAll('\\', '')
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
}

export function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  const counts = new Map<string, number>();
  const lines = text.split('\n');
  // Blanked code keeps its lines: a `# comment` in a script is no heading, but `code` in a heading is part of it.
  for (const [index, line] of proseOf(text).split('\n').entries()) {
    const heading = /^ {0,3}#{1,6}\s/.test(line)
      ? lines[index]?.replace(/^ {0,3}#+\s+/, '').replace(/\s#+\s*$/, '')
      : undefined;
    if (heading === undefined) continue;
    const base = slug(heading);
    const count = counts.get(base) ?? 0;
    counts.set(base, count + 1);
    anchors.add(count === 0 ? base : `${base}-${count}`);
  }
  for (const [, id] of text.matchAll(/<a\s+(?:id|name)="([^"]+)"/g)) anchors.add(id as string);
  return anchors;
}
