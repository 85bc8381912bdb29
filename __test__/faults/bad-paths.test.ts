import type { Files, SandboxErrorCode } from 'cofferdam';
import { describeWithEngine, IMAGES, testManager } from '../support';
import { failure, sturdySandbox, untyped } from './failure';

/** Every call that takes one path. */
const CALLS: Record<string, (files: Files, path: string) => Promise<unknown>> = {
  read: (files, path) => files.read(path),
  readText: (files, path) => files.readText(path),
  stream: async (files, path) => {
    for await (const _ of files.stream(path));
  },
  write: (files, path) => files.write(path, 'x'),
  'write of a stream': (files, path) => files.write(path, new Blob(['x']).stream()),
  writeMany: (files, path) => files.writeMany({ [path]: 'x' }),
  list: (files, path) => files.list(path),
  stat: (files, path) => files.stat(path),
  exists: (files, path) => files.exists(path),
  mkdir: (files, path) => files.mkdir(path),
  remove: (files, path) => files.remove(path),
  'move from': (files, path) => files.move(path, 'elsewhere'),
  'move to': (files, path) => files.move('file', path),
  'copy from': (files, path) => files.copy(path, 'elsewhere'),
  'copy to': (files, path) => files.copy('file', path),
};

type Name = keyof typeof CALLS;

const ALL = Object.keys(CALLS);
const READS: Name[] = ['read', 'readText', 'stream'];
const WRITES: Name[] = ['write', 'write of a stream', 'writeMany'];

/** Linux's limits are 255 bytes for a name and 4,095 for a path. */
const LONG_NAME = 'n'.repeat(256);

/** Nothing is at such a path: that is an answer, not an error. */
const SAY_NOTHING_IS_THERE: Name[] = ['stat', 'exists', 'remove'];

const without = (names: Name[], left: Name[]) => names.filter((name) => !left.includes(name));

const CASES: [what: string, path: string, code: SandboxErrorCode, calls: Name[]][] = [
  ['an empty path', '', 'INVALID_ARGUMENT', ALL],
  ['a NUL byte', 'a\0b', 'INVALID_ARGUMENT', ALL],
  ['half of a surrogate pair', 'a\ud800', 'INVALID_ARGUMENT', ALL],
  ['a path that is too long', 'd/'.repeat(2_100), 'INVALID_ARGUMENT', ALL],
  ['a name that is too long', LONG_NAME, 'INVALID_ARGUMENT', ALL],
  ['a folder name that is too long', `${LONG_NAME}/x`, 'INVALID_ARGUMENT', ALL],
  ['a path through a file', 'file/x', 'NOT_A_DIRECTORY', without(ALL, SAY_NOTHING_IS_THERE)],
  ['a path deep below a file', 'file/x/y/z', 'NOT_A_DIRECTORY', without(ALL, SAY_NOTHING_IS_THERE)],
  ['a file where a folder is meant', 'file', 'NOT_A_DIRECTORY', ['list']],
  ['a missing path', 'missing', 'FILE_NOT_FOUND', [...READS, 'list', 'move from', 'copy from']],
  ['a missing path below a missing path', 'missing/x', 'FILE_NOT_FOUND', [...READS, 'list', 'move from', 'copy from']],
  ['a directory', 'dir', 'IS_A_DIRECTORY', [...READS, ...WRITES, 'remove', 'move to', 'copy to']],
  ['the root', '/', 'IS_A_DIRECTORY', [...READS, ...WRITES, 'remove']],
  ['the workdir', '.', 'IS_A_DIRECTORY', [...READS, ...WRITES]],
  ['the parent of the workdir', '..', 'IS_A_DIRECTORY', [...READS, ...WRITES]],
  ['/dev/null', '/dev/null', 'INVALID_ARGUMENT', [...READS, ...WRITES, 'copy from', 'copy to', 'move to']],
  ['/dev/zero', '/dev/zero', 'INVALID_ARGUMENT', [...READS, ...WRITES, 'copy from', 'copy to', 'move to']],
  ["PID 1's own input", '/proc/1/fd/0', 'INVALID_ARGUMENT', READS],
  ['a FIFO', 'fifo', 'INVALID_ARGUMENT', [...READS, ...WRITES, 'copy from', 'copy to']],
  ['a link to a FIFO', 'to-fifo', 'INVALID_ARGUMENT', [...READS, ...WRITES, 'copy to']],
  ['a link to itself', 'loop', 'INVALID_ARGUMENT', [...READS, ...WRITES, 'list', 'copy to']],
  ['a circle of links', 'circle', 'INVALID_ARGUMENT', [...READS, ...WRITES, 'list', 'copy to']],
  ['a path through a circle of links', 'loop/x', 'INVALID_ARGUMENT', ALL],
  // The kernel says "no such file" to whoever would make one in /proc.
  ['a new name in /proc', '/proc/cofferdam', 'FILE_NOT_FOUND', ['mkdir', ...WRITES, 'copy to']],
  ['a new folder in /proc', '/proc/cofferdam/x', 'FILE_NOT_FOUND', ['mkdir', ...WRITES, 'move to', 'copy to']],
];

const ROWS = CASES.flatMap(([what, path, code, calls]) => calls.map((name) => [what, name, code, path] as const));

describeWithEngine('a path that cannot be used', () => {
  const sandbox = sturdySandbox(testManager(), { image: IMAGES.alpine });

  beforeEach(async () => {
    const made = await sandbox().exec(
      'cd / && rm -rf /workspace/* && cd /workspace && mkdir dir && touch dir/inside && printf content > file && ' +
        'mkfifo fifo && ln -s fifo to-fifo && ln -s loop loop && ln -s circle2 circle && ln -s circle circle2',
    );
    expect(made.exitCode).toBe(0);
  });

  afterEach(async () => {
    // Nothing was changed on the way to the error, and nothing is left over from it.
    const { stdout } = await sandbox().exec('ls -A; cat file; ls dir; stat -c "%a %t:%T" /dev/null /dev/zero');
    const names = ['circle', 'circle2', 'dir', 'fifo', 'file', 'loop', 'to-fifo'];
    const untouched = `${names.join('\n')}\ncontentinside\n666 1:3\n666 1:5\n`;
    // The next test shall not suffer for it.
    if (stdout !== untouched) await sandbox().close();
    expect(stdout).toBe(untouched);
  });

  // A hang is the failure to find here, and a short guard names it.
  test.each(ROWS)(
    '%s: %s rejects with %s',
    async (_what, name, code, path) => {
      const error = await failure(CALLS[name]?.(sandbox().files, path) ?? Promise.resolve());
      expect(error.code).toBe(code);
      expect(error.message.length).toBeLessThan(1_000);
    },
    10_000,
  );

  test('nothing is at a path through a file', async () => {
    const { files } = sandbox();
    expect(await files.stat('file/x')).toBeNull();
    expect(await files.exists('file/x')).toBe(false);
    expect(await files.remove('file/x')).toBe(false);
  });

  test('paths that are not strings are refused', async () => {
    for (const path of [null, 5, {}, ['file']]) {
      for (const name of without(ALL, ['writeMany'])) {
        const error = await failure(CALLS[name]?.(sandbox().files, untyped(path)) ?? Promise.resolve());
        expect([name, error.code]).toEqual([name, 'INVALID_ARGUMENT']);
      }
    }
  });

  test('content that is none is refused', async () => {
    for (const data of [undefined, null, 5, {}, ['x']]) {
      expect((await failure(sandbox().files.write('file', untyped(data)))).code).toBe('INVALID_ARGUMENT');
    }
    const pieces = (async function* () {
      yield Buffer.from('new');
      yield untyped<Uint8Array>(5);
    })();
    expect((await failure(sandbox().files.write('file', pieces))).code).toBe('INVALID_ARGUMENT');
  });

  const numbers = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '1'].map((bad) => untyped<number>(bad));
  const modes = [-1, 0o10000, 1.5, '644'].map((bad) => untyped<number>(bad));

  test.each<[string, (files: Files) => Promise<unknown>[]]>([
    ['offset', (files) => numbers.map((offset) => files.read('file', { offset }))],
    ['maxBytes of read', (files) => numbers.map((maxBytes) => files.read('file', { maxBytes }))],
    ['maxBytes of readText', (files) => numbers.map((maxBytes) => files.readText('file', { maxBytes }))],
    ['maxEntries', (files) => numbers.map((maxEntries) => files.list('dir', { maxEntries }))],
    ['mode of write', (files) => modes.map((mode) => files.write('file', 'x', { mode }))],
    ['mode of mkdir', (files) => modes.map((mode) => files.mkdir('new', { mode }))],
    ['user', (files) => ['', 'no-such-user'].map((user) => files.write('file', 'x', { user }))],
    ['user that is no uid', (files) => [files.write('file', 'x', { user: '4294967295' })]],
    ['signal', (files) => [files.write('file', 'x', { signal: untyped({}) })]],
    ['recursive of list', (files) => [files.list('dir', { recursive: untyped('yes') })]],
    ['recursive of remove', (files) => [files.remove('dir', { recursive: untyped('yes') })]],
    ['options of write', (files) => [files.write('file', 'x', untyped(null))]],
    ['options of read', (files) => [files.read('file', untyped(null))]],
    ['options of list', (files) => [files.list('dir', untyped(null))]],
  ])('a bad %s is refused', async (_, calls) => {
    const errors = await Promise.all(calls(sandbox().files).map(failure));
    expect(errors.map(({ code }) => code)).toEqual(errors.map(() => 'INVALID_ARGUMENT'));
  });

  test('reading past the end gives nothing, and the true size', async () => {
    for (const offset of [7, 100, Number.MAX_SAFE_INTEGER]) {
      const content = await sandbox().files.read('file', { offset });
      expect(content).toMatchObject({ truncated: false, sizeBytes: 7 });
      expect(content.bytes).toHaveLength(0);
    }
  });

  test('a file that is there is not replaced against the will of the caller', async () => {
    const error = await failure(sandbox().files.write('file', 'new', { overwrite: false }));
    expect(error.code).toBe('FILE_EXISTS');
  });

  test('a source that breaks gives its own error, and no file', async () => {
    const broken = new Error('the source broke');
    const pieces = (async function* () {
      yield Buffer.from('half');
      throw broken;
    })();
    await expect(sandbox().files.write('file', pieces)).rejects.toBe(broken);
  });
});

describeWithEngine('trees that lead into themselves', () => {
  const sandbox = sturdySandbox(testManager(), { image: IMAGES.alpine });

  test.each([
    ['the same path', 'file'],
    ['a link to it', 'to-file'],
    ['a hard link of it', 'hard-link'],
    ['the same path said otherwise', './dir/../file'],
  ])('copying a file to %s does not lose its content', async (_, to) => {
    await sandbox().exec('rm -rf * && mkdir dir && printf content > file && ln -s file to-file && ln file hard-link');
    await sandbox()
      .files.copy('file', to)
      .catch(() => {});
    expect(await sandbox().files.readText('file')).toBe('content');
  });

  test.each(['dir', 'dir/below', 'dir/../dir/below', 'other/../dir/below', 'to-dir/below'])(
    'copying a directory to %s rejects',
    async (to) => {
      await sandbox().exec('rm -rf * && mkdir dir other && touch dir/inside && ln -s dir to-dir');
      expect((await failure(sandbox().files.copy('dir', to))).code).toBe('INVALID_ARGUMENT');
      const { stdout } = await sandbox().exec('find dir | sort');
      expect(stdout).toBe('dir\ndir/inside\n');
    },
  );

  test('moving a directory below itself rejects', async () => {
    await sandbox().exec('rm -rf * && mkdir dir && touch dir/inside');
    expect((await failure(sandbox().files.move('dir', 'dir/below'))).code).toBe('INVALID_ARGUMENT');
    expect(await sandbox().files.exists('dir/inside')).toBe(true);
  });
});

describeWithEngine('a tree as deep as a path can name', () => {
  const sandbox = sturdySandbox(testManager(), { image: IMAGES.alpine });
  const DEPTH = 2_000;
  const deep = (name: string) => Array<string>(DEPTH).fill(name).join('/');

  /** A folder for each test: to clear one takes longer than all that is tested. */
  let here = '';
  let tests = 0;

  const depth = async (top: string) => {
    const { stdout } = await sandbox().exec(`find ${top} -type d | wc -l`);
    return Number(stdout);
  };

  beforeEach(async () => {
    tests += 1;
    here = String(tests);
    // Not through the API: what is tested here must not need itself.
    expect((await sandbox().exec(`mkdir -p ${here}/${deep('d')}`)).ok).toBe(true);
  });

  test('can be made', async () => {
    await sandbox().files.mkdir(`${here}/${deep('e')}`);
    expect(await depth(`${here}/e`)).toBe(DEPTH);
  });

  test('can be made by writing a file at its end', async () => {
    await sandbox().files.write(`${here}/${deep('e')}/f`, 'x');
    expect(await depth(`${here}/e`)).toBe(DEPTH);
  });

  test('can be listed', async () => {
    expect(await sandbox().files.list(here, { recursive: true })).toHaveLength(DEPTH);
  });

  test('can be copied', async () => {
    await sandbox().files.copy(`${here}/d`, `${here}/e`);
    expect(await depth(`${here}/e`)).toBe(DEPTH);
    expect(await depth(`${here}/d`)).toBe(DEPTH);
  });

  test('can be moved to another file system', async () => {
    await sandbox().files.move(`${here}/d`, '/dev/shm/d');
    expect(await depth('/dev/shm/d')).toBe(DEPTH);
    expect(await sandbox().files.exists(`${here}/d`)).toBe(false);
  });

  test('can be removed', async () => {
    expect(await sandbox().files.remove(`${here}/d`, { recursive: true })).toBe(true);
    expect(await sandbox().files.exists(`${here}/d`)).toBe(false);
  });
});
