import { readFileSync } from 'node:fs';
import path from 'node:path';
import { namesIn } from './examples';
import { pages, ROOT, textOf } from './pages';

const { exports } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
const entryPoints = Object.keys(exports).filter((subpath) => subpath !== './package.json');

const reference = pages.filter((page) => page.startsWith('docs/api/') && page !== 'docs/api/README.md');
const headings = new Set(
  reference.flatMap((page) =>
    [...textOf(page).matchAll(/^#{1,3} (\w+)(?:\(\))?$/gm)].map((match) => match[1] as string),
  ),
);
const index = textOf('docs/api/README.md');

describe.each(entryPoints)('the API reference of %s', (subpath) => {
  const folder = path.posix.join('ts', subpath);
  const names = namesIn(textOf(path.posix.join(folder, 'index.ts')));

  test('has every name that is exported, by its types and when it runs', () => {
    const running = Object.keys(require(path.join(ROOT, 'dist', subpath, 'index.js')));
    expect(names.length).toBeGreaterThan(0);
    expect(running.filter((name) => !names.includes(name))).toEqual([]);
    // A second name for something is documented under its first.
    const documented = names.filter((name) => name !== 'ManagerOptions');
    expect(documented.filter((name) => !headings.has(name))).toEqual([]);
    expect(documented.filter((name) => !index.includes(`[\`${name}\`]`))).toEqual([]);
  });
});
