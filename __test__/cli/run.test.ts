import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { writeArtifacts } from '../../ts/cli/artifacts';
import { countProcesses, describeWithEngine, IMAGES, testManager, testOnDocker, until } from '../support';
import { cofferdam, folder, shell, start } from './program';

/** On any backend: the shell of the smallest image. */
const SH = ['run', '--runtime', 'bash', '--image', IMAGES.alpine];

describeWithEngine('cofferdam run', () => {
  const manager = testManager();

  test('prints what the program prints, and passes its exit code on', async () => {
    const ended = await cofferdam([...SH, '--code', 'echo "$((6 * 7))"; echo oops >&2; exit 3']);
    expect(ended).toMatchObject({ code: 3, stdout: '42\n', stderr: 'oops\n' });
  });

  testOnDocker('is Python by default', async () => {
    expect(await cofferdam(['run', '--code', 'print(6 * 7)'])).toMatchObject({ code: 0, stdout: '42\n', stderr: '' });
  });

  testOnDocker.each([
    ['main.py', 'import sys; print("py", *sys.argv[1:])', 'py a --b\n'],
    ['main.js', 'console.log("js", ...process.argv.slice(2), typeof require)', 'js a --b function\n'],
    ['main.cjs', 'console.log("cjs", ...process.argv.slice(2), typeof require)', 'cjs a --b function\n'],
    ['main.mjs', 'import os from "node:os"; console.log("mjs", ...process.argv.slice(2), os.EOL)', 'mjs a --b \n\n'],
    ['main.sh', 'echo sh "$@"', 'sh a --b\n'],
    ['tool', '#!/usr/bin/env python3\nimport sys; print("tool", *sys.argv[1:])', 'tool a --b\n'],
  ])('%s runs by its name or first line, with its arguments', async (name, code, stdout) => {
    const cwd = folder();
    writeFileSync(path.join(cwd, name), code);
    expect(await cofferdam(['run', name, '--', 'a', '--b'], { cwd })).toMatchObject({ code: 0, stdout, stderr: '' });
  });

  test('from standard input, named or not', async () => {
    expect((await cofferdam([...SH, '-'], { input: 'echo named' })).stdout).toBe('named\n');
    expect((await cofferdam(SH, { input: 'echo not "$@"' })).stdout).toBe('not\n');
    expect((await cofferdam([...SH, '--', 'x'], { input: 'echo "$@"' })).stdout).toBe('x\n');
  });

  test('variables, limits and time', async () => {
    const words = [...SH, '-e', 'ONE=1', '--memory', '64', '--pids', '32', '--timeout', '2s'];
    const ended = await cofferdam([...words, '--code', 'echo $ONE; sleep 60']);
    expect(ended).toMatchObject({ code: 143, stdout: '1\n', stderr: 'cofferdam: timed out after 2s\n' });
  });

  test('files and folders go in by their paths from here, and artifacts come back', async () => {
    const cwd = folder();
    mkdirSync(path.join(cwd, 'data/deep'), { recursive: true });
    writeFileSync(path.join(cwd, 'data/a.txt'), 'a');
    writeFileSync(path.join(cwd, 'data/deep/b.bin'), Buffer.from([0, 255, 10]));
    symlinkSync('/etc/passwd', path.join(cwd, 'data/link'));
    writeFileSync(path.join(cwd, 'c.txt'), 'c');
    const code = 'find . -type f | sort; mkdir -p out/x; cp data/deep/b.bin out/x/; echo new > out/new.txt';
    const files = ['--file', 'data', '--file', 'c.txt=renamed/c', '--file', path.join(cwd, 'c.txt')];
    const ended = await cofferdam([...SH, ...files, '-a', 'out/**', '-o', 'back', '--code', code], { cwd });
    expect(ended).toMatchObject({
      code: 0,
      stdout: './c.txt\n./data/a.txt\n./data/deep/b.bin\n./main.sh\n./renamed/c\n',
      stderr: '',
    });
    expect(readFileSync(path.join(cwd, 'back/out/x/b.bin'))).toEqual(Buffer.from([0, 255, 10]));
    expect(readFileSync(path.join(cwd, 'back/out/new.txt'), 'utf8')).toBe('new\n');
  });

  test('keeps existing files by default, and says so', async () => {
    const cwd = folder();
    writeFileSync(path.join(cwd, 'a.txt'), 'mine');
    const words = [...SH, '--code', 'echo theirs > a.txt; echo b > b.txt', '--artifact', '*.txt'];
    const kept = await cofferdam(words, { cwd });
    expect(kept).toMatchObject({ code: 1, stdout: '' });
    expect(kept.stderr).toContain('skipped a.txt: the file already exists; --force replaces it');
    expect(readFileSync(path.join(cwd, 'a.txt'), 'utf8')).toBe('mine');
    expect(readFileSync(path.join(cwd, 'b.txt'), 'utf8')).toBe('b\n');
    expect(await cofferdam([...words, '--force'], { cwd })).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(path.join(cwd, 'a.txt'), 'utf8')).toBe('theirs\n');
  });

  test('a file that cannot be written does not take the others along', async () => {
    const cwd = folder();
    writeFileSync(path.join(cwd, 'a'), 'mine');
    const words = [...SH, '--code', 'mkdir a; echo b > a/b.txt; echo c > c.txt', '--artifact', '**/*.txt'];
    const ended = await cofferdam(words, { cwd });
    expect(ended).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('skipped a/b.txt: ') });
    expect(readFileSync(path.join(cwd, 'c.txt'), 'utf8')).toBe('c\n');
  });

  test('--json gives the result, with files in it or where they were written', async () => {
    const cwd = folder();
    const words = [...SH, '--json', '--artifact', '*.txt', '--code', "echo yes; printf '\\377' > a.txt; exit 3"];
    const inside = await cofferdam(words, { cwd });
    expect(inside.code).toBe(3);
    expect(JSON.parse(inside.stdout)).toMatchObject({
      exitCode: 3,
      stdout: 'yes\n',
      runtime: 'bash',
      artifacts: [{ path: 'a.txt', sizeBytes: 1, base64: '/w==' }],
    });
    expect(existsSync(path.join(cwd, 'a.txt'))).toBe(false);
    const written = JSON.parse((await cofferdam([...words, '--out', 'there'], { cwd })).stdout);
    expect(written.artifacts).toEqual([{ path: 'a.txt', sizeBytes: 1, file: path.join('there', 'a.txt') }]);
    expect(readFileSync(path.join(cwd, 'there/a.txt'))).toEqual(Buffer.from([255]));
  });

  test.each([
    [77, 'while it starts'],
    [78, 'while it runs'],
  ])('Ctrl-C ends it, and nothing is left (%d: %s)', async (pids, when) => {
    const before = new Set((await manager.list()).map(({ id }) => id));
    // Its own label would be better known, but a run has none: a limit that nobody else asks for.
    const { child, ended } = start([...SH, '--pids', String(pids), '--code', 'sleep 1000']);
    const ours = () =>
      manager.list().then((all) => all.filter(({ id, limits }) => !before.has(id) && limits.pids === pids));
    const [{ id = '' } = {}] = await until(async () => {
      const found = await ours();
      return found.length > 0 && found;
    });
    if (when === 'while it runs') {
      // It is listed as soon as it exists, and found as soon as it runs.
      const sandbox = await until(() => manager.get(id).catch(() => false as const));
      await until(async () => (await countProcesses(sandbox, 'sleep 1000')) > 0);
    }
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 130, stdout: '', stderr: '' });
    await until(async () => (await ours()).length === 0);
  });

  test('a reader who has read enough is no failure', async () => {
    const line = `set -o pipefail; cofferdam ${SH.map((word) => `'${word}'`).join(' ')} --code 'seq 100000' | head -1`;
    expect(await shell(line)).toEqual({ code: 0, output: '1\n' });
  });

  test.each([
    [['nope.py'], 1, /cannot open "nope.py": no such file or folder/],
    [['.', '--runtime', 'bash'], 1, /folder/],
    [['main.xyz'], 2, /cannot tell the runtime of "main.xyz": give --runtime python or node or bash/],
    [['main.xyz', '--code', '1'], 2, /--code or a file, not both/],
    [['--code', '1', '--runtime', 'perl'], 2, /--runtime must be python or node or bash, not "perl"/],
    [['--code', '1', '--timeout', 'soon'], 2, /--timeout must be a time such as/],
    [['--code', '1', '--memory', 'much'], 2, /--memory must be a whole number/],
    [['--code', '1', '--package', 'pandas'], 2, /--package must be installer:name, as in pip:pandas/],
    [['--code', '1', '--out', 'x'], 2, /--out is for --artifact/],
    [['--code', '1', '--file', 'nope.csv'], 1, /cannot find "nope.csv"/],
    [['--code', '1', '--host', 'tcp://127.0.0.1:1', '--backend', 'docker'], 1, /ENGINE_UNAVAILABLE/],
    [['--code', '1', '--env', 'COFFERDAM_NOT_SET'], 2, /has no value/],
  ])('%j is said in words', async (words, code, message) => {
    const cwd = folder();
    writeFileSync(path.join(cwd, 'main.xyz'), 'what am I');
    const ended = await cofferdam(['run', ...words], { cwd });
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr).not.toMatch(/^ +at /m);
    expect(ended).toMatchObject({ code, stdout: '' });
  });
});

describe('what a run brings back', () => {
  const content = Buffer.from('evil');

  test.each(['../out.txt', '/tmp/cofferdam-abs.txt', 'a/../../out.txt', 'a//b', '..'])(
    'never leaves the folder: %s',
    async (name) => {
      const parent = folder();
      const [written] = await writeArtifacts(
        [{ path: name, sizeBytes: 4, content }],
        path.join(parent, 'in'),
        'replace',
      );
      expect(written).toMatchObject({ file: null, omitted: expect.stringContaining('leads out') });
      expect(existsSync(path.join(parent, 'out.txt'))).toBe(false);
    },
  );

  test.each(['keep', 'replace'] as const)('never goes through a link of the folder (%s)', async (existing) => {
    const parent = folder();
    const inside = path.join(parent, 'in');
    mkdirSync(inside);
    mkdirSync(path.join(parent, 'elsewhere'));
    writeFileSync(path.join(parent, 'precious'), 'mine');
    symlinkSync('../elsewhere', path.join(inside, 'way'));
    symlinkSync('../precious', path.join(inside, 'file'));
    symlinkSync('../not-there', path.join(inside, 'dangling'));
    const names = ['way/x', 'file', 'dangling', 'fine/x'];
    await writeArtifacts(
      names.map((name) => ({ path: name, sizeBytes: 4, content })),
      inside,
      existing,
    );
    expect(existsSync(path.join(parent, 'elsewhere/x'))).toBe(false);
    expect(existsSync(path.join(parent, 'not-there'))).toBe(false);
    expect(readFileSync(path.join(parent, 'precious'), 'utf8')).toBe('mine');
    expect(readFileSync(path.join(inside, 'fine/x'), 'utf8')).toBe('evil');
    if (existing === 'replace') expect(readFileSync(path.join(inside, 'file'), 'utf8')).toBe('evil');
  });
});
