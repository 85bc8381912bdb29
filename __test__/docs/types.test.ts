import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { doccommentExamples, withPrelude } from './examples';
import { type Fence, fencesOf, isGenerated, pages, ROOT } from './pages';

/** What a reader pastes must compile as it stands; what a doc comment shows, or is marked `no-run`, may take much for granted. */
const standing = pages
  .filter((page) => !isGenerated(page))
  .flatMap((page) => fencesOf(page).filter(({ language }) => language === 'ts'))
  .map((fence) => ({ fence, source: `${fence.code}\nexport {};\n`, before: 0 }));
const noRun = pages
  .filter((page) => !isGenerated(page))
  .flatMap((page) => fencesOf(page).filter(({ language, flags }) => language === 'js' && flags.includes('no-run')));
const leaning = [...doccommentExamples(), ...noRun].map((fence) => ({ fence, ...withPrelude(fence.code) }));

interface Snippet {
  fence: Fence;
  source: string;
  /** How many lines stand before the snippet's own first. */
  before: number;
}

const snippets: readonly Snippet[] = [...standing, ...leaning];
const fileOf = (index: number) => `snippet-${index}.mts`;

const OPTIONS = {
  target: 'es2023',
  lib: ['es2024', 'esnext.disposable'],
  module: 'node16',
  moduleResolution: 'node16',
  types: ['node', 'jest'],
  strict: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  noEmit: true,
};

/** All of them in one run of the compiler; what it says, by snippet. */
async function check(): Promise<Map<number, string[]>> {
  // Inside the checkout, so that `import 'cofferdam'` finds what the package publishes.
  const folder = mkdtempSync(path.join(ROOT, '.cache-snippets-'));
  try {
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: OPTIONS, include: ['*.mts'] }));
    for (const [index, { source }] of snippets.entries()) writeFileSync(path.join(folder, fileOf(index)), source);
    return faultsIn(await tsc(folder));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function tsc(folder: string): Promise<string> {
  const compiler = path.join(ROOT, 'node_modules/typescript/bin/tsc');
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [compiler, '-p', folder, '--pretty', 'false'],
      { cwd: folder },
      (_error, stdout, stderr) => resolve(`${stdout}${stderr}`),
    );
  });
}

function faultsIn(output: string): Map<number, string[]> {
  const faults = new Map<number, string[]>();
  for (const line of output.split('\n').filter((text) => text !== '' && !text.startsWith(' '))) {
    const [, index, at, what] = /^snippet-(\d+)\.mts\((\d+),\d+\): error (.*)/.exec(line) ?? [];
    const snippet = snippets[Number(index)];
    if (!snippet) throw new Error(`the compiler says: ${line}`);
    const { fence, before } = snippet;
    const told = `${fence.page}:${fence.line + Number(at) - 1 - before}: ${what}`;
    faults.set(Number(index), [...(faults.get(Number(index)) ?? []), told]);
  }
  return faults;
}

describe('TypeScript on pages and in doc comments', () => {
  let faults: Map<number, string[]>;
  beforeAll(async () => {
    faults = await check();
  });

  test('is found', () => {
    expect(leaning.length).toBeGreaterThan(80);
  });

  test.each(snippets.map(({ fence }, index) => [fence.page, fence.line, index] as const))(
    '%s:%d compiles under strict',
    (_page, _line, index) => {
      expect(faults.get(index) ?? []).toEqual([]);
    },
  );
});
