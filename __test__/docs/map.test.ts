import { existsSync } from 'node:fs';
import path from 'node:path';
import { filesIn, ROOT, textOf } from './pages';

const ARCHITECTURE = textOf('ARCHITECTURE.md');
const isThere = (name: string) => existsSync(path.join(ROOT, name));

/** Words in backticks that are places in this repository, by how they begin. */
const PLACE = /`((?:__test__|bench|crates|docs|examples|fuzz|npm|scripts|src|ts)\/[^`\s*<…]*)`/g;
const placesIn = (text: string) => [...text.matchAll(PLACE)].map((match) => match[1] as string);

describe('the map in ARCHITECTURE.md', () => {
  test('names only places that there are', () => {
    const places = placesIn(ARCHITECTURE);
    expect(places.length).toBeGreaterThan(60);
    expect(places.filter((place) => !isThere(place))).toEqual([]);
  });

  test('has a room for all of the code', () => {
    const rows = ARCHITECTURE.split('\n').filter((line) => line.startsWith('| `'));
    // `id.rs` beside `crates/core/src/key.rs` has its folder.
    const rooms = rows.flatMap((row) => {
      const [room = '', ...beside] = [...row.matchAll(/`([\w./-]+)`/g)].map((match) => match[1] as string);
      return [room, ...beside.map((name) => path.posix.join(path.posix.dirname(room), name))];
    });
    const code = ['ts', 'src', 'crates']
      .flatMap(filesIn)
      .filter((file) => /\.(ts|rs)$/.test(file) && !/\/(tests|build\.rs$|src\/lib\.rs$)/.test(file));
    expect(code.filter((file) => !rooms.some((room) => file.startsWith(room)))).toEqual([]);
  });

  const [, list = ''] = /^## Invariants\n([\s\S]*?)^## /m.exec(ARCHITECTURE) ?? [];
  const invariants = list
    .split(/^(?=\d+\. )/m)
    .slice(1)
    .map((text) => [Number.parseInt(text, 10), text] as const);

  test('counts its invariants without a gap', () => {
    expect(invariants.length).toBeGreaterThan(15);
    expect(invariants.map(([number]) => number)).toEqual(invariants.map((_, index) => index + 1));
  });

  test.each(invariants)('invariant %d is guarded by tests that there are', (_number, text) => {
    const guards = placesIn(text);
    expect(guards).not.toEqual([]);
    expect(guards.filter((guard) => !isThere(guard) || !isTest(guard))).toEqual([]);
  });
});

function isTest(place: string): boolean {
  if (/^fuzz\/|^bench\/rows\//.test(place)) return true;
  return place.endsWith('.rs') ? /#\[(?:tokio::)?test|proptest!/.test(textOf(place)) : /\.test\.ts$/.test(place);
}

describe('other pages for those who carry on', () => {
  test.each(['CONTRIBUTING.md', 'SECURITY.md', ...filesIn('docs/decisions')])(
    '%s names only places that there are',
    (page) => {
      expect(placesIn(textOf(page)).filter((place) => !isThere(place))).toEqual([]);
    },
  );

  test('every decision is in the list, with the same headings', () => {
    const records = filesIn('docs/decisions').filter((file) => /\/\d{4}-.*\.md$/.test(file));
    const index = textOf('docs/decisions/README.md');
    for (const record of records) {
      expect(index).toContain(`(${path.basename(record)})`);
      expect([...textOf(record).matchAll(/^## (.*)$/gm)].map((match) => match[1])).toEqual([
        'Context',
        'Decision',
        'What was measured',
        'Consequences',
        'What would change our mind',
      ]);
    }
    expect(records.length).toBeGreaterThanOrEqual(8);
  });
});
