import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const ROOT = path.resolve(__dirname, '../..');
const PARTS = [
  'scripts',
  'npm',
  'ts/internal',
  '.github',
  'package.json',
  'package-lock.json',
  'Cargo.toml',
  'Cargo.lock',
  'fuzz/Cargo.lock',
];

let copy: string;
beforeEach(() => {
  copy = mkdtempSync(path.join(tmpdir(), 'cofferdam-agree-'));
  for (const part of PARTS) cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
});
afterEach(() => rmSync(copy, { recursive: true, force: true }));

/** What `npm run release:agree` says of the copy, and whether it is content. */
function agree(): Promise<{ failed: boolean; said: string }> {
  const script = path.join(copy, 'scripts/release/agree.mjs');
  return new Promise((resolve) => {
    execFile(process.execPath, [script], (error, stdout, stderr) =>
      resolve({ failed: !!error, said: stdout + stderr }),
    );
  });
}

function change(file: string, from: string | RegExp, to: string) {
  const before = readFileSync(path.join(copy, file), 'utf8');
  const after = before.replace(from, to);
  expect(after).not.toBe(before);
  writeFileSync(path.join(copy, file), after);
}

describe('targets and versions', () => {
  test('agree in this checkout', async () => {
    expect(await agree()).toEqual({ failed: false, said: expect.stringMatching(/^8 targets of version .* the same/) });
  });

  const CHANGES = [
    ['a target that package.json alone has', 'package.json', '"x86_64-apple-darwin",\n', '', 'npm/ has darwin-x64'],
    [
      'a target that the workflow lacks',
      '.github/workflows/release.yml',
      /.*target: linux-x64-musl.*\n/,
      '',
      'release.yml lacks linux-x64-musl',
    ],
    [
      'a target that the loader lacks',
      'ts/internal/platform.ts',
      "  'darwin-arm64',\n",
      '',
      'platform.ts lacks darwin-arm64',
    ],
    [
      'a package of another version',
      'npm/linux-x64-gnu/package.json',
      /"version": ".*"/,
      '"version": "9.9.9"',
      'npm/linux-x64-gnu/package.json is not what the targets and the version make it: run "npm run release:npm"',
    ],
    [
      'a core of another version',
      'Cargo.toml',
      /(\[workspace\.package\]\nversion = )".*"/,
      '$1"9.9.9"',
      'Cargo.toml is of version 9.9.9',
    ],
    [
      'an install script',
      'package.json',
      '"scripts": {',
      '"scripts": { "postinstall": "true",',
      'a script "postinstall"',
    ],
    [
      'another glibc in the error of the loader',
      'ts/internal/load.ts',
      /FLOOR = '.*'/,
      "FLOOR = '2.28'",
      'speaks of glibc 2.28',
    ],
    ['a workflow that GitHub would refuse', '.github/workflows/ci.yml', 'runs-on:', 'run-on:', 'ci.yml:'],
  ] as const;

  test('do not, where something is changed: each is named, with the cure', async () => {
    for (const [, file, from, to] of CHANGES) change(file, from, to);
    const { failed, said } = await agree();
    for (const [what, , , , fault] of CHANGES)
      expect({ what, said }).toEqual({ what, said: expect.stringContaining(fault) });
    expect(failed).toBe(true);
  });

  // The quickest of them alone: none leans on another to be seen.
  test('do not, with one change alone', async () => {
    const [, file, from, to, fault] = CHANGES[0];
    change(file, from, to);
    const { failed, said } = await agree();
    expect(said).toContain(fault);
    expect(failed).toBe(true);
  });
});
