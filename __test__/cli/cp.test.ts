import { randomBytes } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describeWithEngine, IMAGES } from '../support';
import { cofferdam, folder, opened, shell } from './program';

describeWithEngine('cofferdam cp', () => {
  let id: string;

  beforeAll(async () => {
    id = await opened('--image', IMAGES.alpine);
  });

  async function inside(line: string): Promise<string> {
    return (await cofferdam(['exec', id, line])).stdout;
  }

  /** A folder of the host with a project in it. */
  function project(): string {
    const at = folder();
    mkdirSync(path.join(at, 'p/src'), { recursive: true });
    writeFileSync(path.join(at, 'p/.gitignore'), '*.log\n');
    writeFileSync(path.join(at, 'p/a.txt'), 'a');
    writeFileSync(path.join(at, 'p/noise.log'), 'noise');
    writeFileSync(path.join(at, 'p/src/run.sh'), 'echo run', { mode: 0o755 });
    symlinkSync('a.txt', path.join(at, 'p/link'));
    return at;
  }

  test('a file in and out, exactly', async () => {
    const at = folder();
    const bytes = randomBytes(1_000_000);
    writeFileSync(path.join(at, 'in.bin'), bytes);
    expect(await cofferdam(['cp', 'in.bin', `${id}:files/`], { cwd: at })).toMatchObject({
      code: 0,
      stdout: '',
      stderr: '',
    });
    await cofferdam(['cp', 'in.bin', `${id}:files/named.bin`], { cwd: at });
    expect(await inside('cmp files/in.bin files/named.bin && ls files')).toBe('in.bin\nnamed.bin\n');
    await cofferdam(['cp', `${id}:/workspace/files/in.bin`, '.'], { cwd: folder() });
    expect((await cofferdam(['cp', `${id}:files/in.bin`, 'out.bin'], { cwd: at })).code).toBe(0);
    expect(readFileSync(path.join(at, 'out.bin')).equals(bytes)).toBe(true);
  });

  test('folders: by name into one that is there, else as the target', async () => {
    const at = project();
    await cofferdam(['cp', 'p', `${id}:fresh`], { cwd: at });
    await cofferdam(['cp', 'p', `${id}:fresh`], { cwd: at });
    await cofferdam(['cp', 'p/.', `${id}:fresh/content`], { cwd: at });
    const found = await inside('cd fresh && ls -d a.txt p/a.txt content/a.txt && readlink link && ./src/run.sh');
    expect(found).toBe('a.txt\ncontent/a.txt\np/a.txt\na.txt\nrun\n');
    expect(await inside('test -x fresh/src/run.sh && echo yes')).toBe('yes\n');

    await inside('mkdir -p real && ln -s real way');
    await cofferdam(['cp', 'p/a.txt', `${id}:way`], { cwd: at });
    expect(await inside('cat real/a.txt')).toBe('a');

    const out = folder();
    await cofferdam(['cp', `${id}:fresh/p`, 'copy'], { cwd: out });
    await cofferdam(['cp', `${id}:fresh/p`, 'copy'], { cwd: out });
    await cofferdam(['cp', `${id}:fresh/p/.`, 'copy'], { cwd: out });
    expect(readdirSync(path.join(out, 'copy')).sort()).toEqual([
      '.gitignore',
      'a.txt',
      'link',
      'noise.log',
      'p',
      'src',
    ]);
    expect(readlinkSync(path.join(out, 'copy/link'))).toBe('a.txt');
    expect(lstatSync(path.join(out, 'copy/src/run.sh')).mode & 0o111).toBe(0o111);
  });

  test('several sources into a folder, both ways', async () => {
    const at = project();
    await cofferdam(['cp', 'p/a.txt', 'p/src', `${id}:several`], { cwd: at });
    expect(await inside('find several | sort')).toBe('several\nseveral/a.txt\nseveral/src\nseveral/src/run.sh\n');
    const out = folder();
    await cofferdam(['cp', `${id}:several/a.txt`, `${id}:several/src`, 'there'], { cwd: out });
    expect(readdirSync(path.join(out, 'there')).sort()).toEqual(['a.txt', 'src']);
  });

  test('leaves out what it is told, and --json says what it did', async () => {
    const at = project();
    const words = ['cp', '--json', '--gitignore', '--exclude', 'src', 'p', `${id}:rules`];
    const report = JSON.parse((await cofferdam(words, { cwd: at })).stdout);
    expect(report).toMatchObject({ files: 2, links: 1, bytes: 7 });
    expect(report.skipped.map(({ path }: { path: string }) => path).sort()).toEqual(['noise.log', 'src']);
    expect(await inside('ls -A rules')).toBe('.gitignore\na.txt\nlink\n');
    const again = ['cp', '--json', '--sync', 'p/.', `${id}:rules`];
    expect(JSON.parse((await cofferdam(again, { cwd: at })).stdout)).toMatchObject({ files: 2 });
  });

  test('one file through standard input and output', async () => {
    const bytes = randomBytes(300_000);
    expect((await cofferdam(['cp', '-', `${id}:piped.bin`], { input: bytes })).code).toBe(0);
    expect((await cofferdam(['cp', `${id}:piped.bin`, '-'])).bytes.equals(bytes)).toBe(true);
    const { code, output } = await shell(`set -o pipefail; cofferdam cp ${id}:/proc/cpuinfo - | head -c 9`);
    expect({ code, output }).toEqual({ code: 0, output: 'processor' });
  });

  test('shows how far it is on a terminal alone', async () => {
    const at = folder();
    writeFileSync(path.join(at, 'big'), Buffer.alloc(30_000_000, 'x'));
    const line = `script -qec "$(declare -f cofferdam); cofferdam cp big ${id}:big" /dev/null`;
    const { code, output } = await shell(line, at);
    expect(code).toBe(0);
    expect(output).toMatch(/\d files?, [\d.]+ /);
    // The line is gone when it is done.
    expect(output.endsWith('\r\x1b[K')).toBe(true);
    expect((await cofferdam(['cp', 'big', `${id}:big`], { cwd: at })).stderr).toBe('');
  });

  test.each([
    [['a', 'b'], 2, /one side must be in a sandbox, as in default:path/],
    [['ID:a', 'ID:b'], 2, /one side must be in a sandbox, and the other on this machine/],
    [['a', 'ID:b', 'there'], 2, /one side must be in a sandbox, and the other on this machine/],
    [['-', 'x', 'ID:b'], 2, /- stands for one file/],
    [['ID:a'], 2, /<target> is missing/],
    [['nope', 'ID:'], 1, /cannot find "nope": no such file or folder/],
    [['ID:nope', '.'], 1, /nope.*no such file/],
    [['ID:nope', '-'], 1, /nope.*no such file/],
    [['-', 'ID:/proc/x/y'], 1, /proc/],
    [['nobody-has-this:a', '.'], 1, /there is no sandbox "nobody-has-this"/],
  ])('%j is said in words', async (words, code, message) => {
    const ended = await cofferdam(['cp', ...words.map((word) => word.replace('ID', id))], { cwd: folder() });
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr).not.toMatch(/^ +at /m);
    expect(ended).toMatchObject({ code, stdout: '' });
  });
});
