import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { describeWithEngine } from '../support';

const run = promisify(execFile);
const ROOT = path.resolve(__dirname, '../..');
const pages = ['README.md', ...readdirSync(path.join(ROOT, 'docs')).map((page) => `docs/${page}`)];

function snippets(page: string): string[] {
  const text = readFileSync(path.join(ROOT, page), 'utf8');
  return [...text.matchAll(/^```js\n(.*?)^```/gms)].map((match) => match[1] as string);
}

const all = pages.flatMap((page) => snippets(page).map((code, index) => [page, index + 1, code] as const));

describeWithEngine('the documentation', () => {
  // Inside the checkout, so that `import 'cofferdam'` finds the package itself.
  const folder = mkdtempSync(path.join(ROOT, '.cache-snippets-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('shows the README’s example', () => {
    expect(snippets('README.md')).toHaveLength(1);
    expect(snippets('README.md')[0]?.trim().split('\n').length).toBeLessThanOrEqual(16);
  });

  test.each(all)('%s, snippet %d runs as it stands', async (page, index, code) => {
    const file = path.join(folder, `${path.basename(page)}-${index}.mjs`);
    writeFileSync(file, code);
    const { stdout } = await run(process.execPath, [file], { timeout: 60_000 });
    if (page === 'README.md') expect(stdout).toBe('0 45\n\nstep 1\nstep 2\nstep 3\ntrue\n');
  });

  test.each(pages)('%s has no dead link into the checkout', (page) => {
    const text = readFileSync(path.join(ROOT, page), 'utf8');
    const targets = [...text.matchAll(/\]\(([^)#:]+)\)/g)].map((match) => match[1] as string);
    for (const target of targets) {
      expect(readFileSync(path.resolve(ROOT, path.dirname(page), target)).length).toBeGreaterThan(0);
    }
  });
});
