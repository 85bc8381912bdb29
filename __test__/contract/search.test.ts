import type { Files, Sandbox, SandboxError } from 'cofferdam';
import { PROJECT } from '../project';
import { classes, describeWithEngine, IMAGES, testManager } from '../support';

const relative = (path: string) => path.replace('/workspace/', '');

async function refusal(call: Promise<unknown>): Promise<SandboxError> {
  return call.then(
    () => {
      throw new Error('it did not reject');
    },
    (error) => error,
  );
}

describeWithEngine.each(classes('debian', 'alpine', 'empty'))('search on the %s class', (name) => {
  const manager = testManager();
  let files: Files;
  const names = async (...[pattern, options]: Parameters<Files['glob']>) =>
    (await files.glob(pattern, options)).entries.map(({ path }) => relative(path));
  const places = async (...[pattern, options]: Parameters<Files['grep']>) =>
    (await files.grep(pattern, options)).matches.map(({ path, line }) => `${relative(path)}:${line}`);

  beforeAll(async () => {
    files = (await manager.open({ image: IMAGES[name] })).files;
    await files.writeMany(PROJECT);
  });

  describe('glob', () => {
    test('a star stays within a name, two cross folders, and folders are found too', async () => {
      expect(await names('*.md', { path: 'p' })).toEqual(['p/README.md']);
      expect(await names('**/*.ts', { path: 'p' })).toEqual(['p/src/deep/util.ts', 'p/src/main.ts']);
      expect(await names('src/*', { path: 'p' })).toEqual(['p/src/deep', 'p/src/main.ts']);
      expect(await names('**/*/', { path: 'p/src' })).toEqual(['p/src/deep', 'p/src/deep/dist']);
      expect(await names(['**/*.{md,js}', './src/[l-n]ain.ts'], { path: 'p' })).toEqual([
        'p/README.md',
        'p/src/deep/dist/in.js',
        'p/src/main.ts',
      ]);
    });

    test('what .gitignore files say is left out by default', async () => {
      const logs = await names('**/*.log', { path: 'p' });
      expect(logs).toEqual(['p/src/deep/kept.log']);
      expect(await names('**/*.log', { path: 'p', gitignore: false })).toEqual(['p/src/deep/kept.log', 'p/trace.log']);
      expect(await names('.git/**', { path: 'p' })).toEqual([]);
      expect(await names('.git/**', { path: 'p', gitignore: false })).toEqual(['p/.git/config']);
    });

    test('rules of the folders above hold as well, up to the repository', async () => {
      await files.write('p/src/noise.log', '');
      expect(await names('*', { path: 'p/src' })).toEqual(['p/src/deep', 'p/src/main.ts']);
      expect(await names('*.log', { path: 'p/src', gitignore: false })).toEqual(['p/src/noise.log']);
      await files.remove('p/src/noise.log');
    });

    test('hidden and excluded names are left out on request', async () => {
      expect(await names('.*', { path: 'p' })).toEqual(['p/.env', 'p/.gitignore']);
      expect(await names('**', { path: 'p', hidden: false, exclude: ['deep', '*.md'] })).toEqual([
        'p/src',
        'p/src/main.ts',
      ]);
      expect(await names('.*', { path: 'p', hidden: false, exclude: ['!.env'] })).toEqual(['p/.env']);
    });

    test('says what each one is, and when there are more', async () => {
      const { entries, truncated } = await files.glob('src/main.ts', { path: '/workspace/p' });
      expect(entries).toEqual([
        expect.objectContaining({ path: '/workspace/p/src/main.ts', name: 'main.ts', type: 'file', sizeBytes: 47 }),
      ]);
      expect(truncated).toBe(false);
      const few = await files.glob('**', { path: 'p', maxResults: 3 });
      expect([few.entries.length, few.truncated]).toEqual([3, true]);
      const exact = await files.glob('**/*.ts', { path: 'p', maxResults: 2 });
      expect([exact.entries.length, exact.truncated]).toEqual([2, false]);
      expect(await files.glob('**', { path: 'p', maxResults: 0 })).toEqual({ entries: [], truncated: true });
    });

    test('refuses what cannot be meant', async () => {
      const code = 'INVALID_ARGUMENT';
      for (const pattern of ['/etc/*', '../*', '', '[', 'a{b'] as const) {
        await expect(files.glob(pattern)).rejects.toMatchObject({ code });
      }
      await expect(files.glob(7 as never)).rejects.toMatchObject({ code });
      await expect(files.glob('*', { maxResults: 1e9 })).rejects.toMatchObject({ code });
      await expect(files.glob('*', { path: 'missing' })).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
      await expect(files.glob('*', { path: 'p/README.md' })).rejects.toMatchObject({ code: 'NOT_A_DIRECTORY' });
    });
  });

  describe('grep', () => {
    test('finds lines below a folder, by the rules of .gitignore', async () => {
      expect(await places('needle', { path: 'p' })).toEqual([
        'p/.env:1',
        'p/src/deep/dist/in.js:1',
        'p/src/deep/kept.log:1',
        'p/src/deep/util.ts:3',
        'p/src/main.ts:2',
        'p/src/main.ts:3',
      ]);
      expect(await places('needle', { path: 'p', gitignore: false, include: '*.log' })).toEqual([
        'p/src/deep/kept.log:1',
        'p/trace.log:1',
      ]);
      expect(await places('needle', { path: 'p', hidden: false, exclude: ['src/'] })).toEqual([]);
    });

    test('says where in the line, and what is around it', async () => {
      const { matches, truncated, filesSearched, filesSkipped } = await files.grep('need', {
        path: 'p/src/deep',
        include: ['*.ts'],
        before: 5,
        after: 1,
      });
      expect(matches).toEqual([
        {
          path: '/workspace/p/src/deep/util.ts',
          line: 3,
          column: 1,
          text: 'needle',
          before: ['one', 'two'],
          after: ['four'],
        },
      ]);
      expect([truncated, filesSearched, filesSkipped]).toEqual([false, 1, 0]);
    });

    test('includes by name anywhere, or by path', async () => {
      expect(await places('needle', { path: 'p', include: 'src/*.ts' })).toEqual([
        'p/src/main.ts:2',
        'p/src/main.ts:3',
      ]);
      expect(await places('needle', { path: 'p', include: ['util.*', '*.js'] })).toEqual([
        'p/src/deep/dist/in.js:1',
        'p/src/deep/util.ts:3',
      ]);
    });

    test('searches one file, even an ignored one', async () => {
      expect(await places('needle', { path: 'p/trace.log' })).toEqual(['p/trace.log:1']);
    });

    test('takes expressions, texts, and either case', async () => {
      expect(await places('needle', { path: 'p/README.md' })).toEqual([]);
      expect(await places('needle', { path: 'p/README.md', ignoreCase: true })).toEqual(['p/README.md:3']);
      expect(await places(String.raw`\bneedle\b\s*=`, { path: 'p/src' })).toEqual(['p/src/main.ts:2']);
      expect(await places('{ needle }', { path: 'p/src', literal: true })).toEqual(['p/src/main.ts:3']);
      await files.write('ünïcode.txt', 'ÄRGER\nÄpfel 7٣\n');
      expect(await places('ärger', { path: 'ünïcode.txt', ignoreCase: true })).toEqual(['ünïcode.txt:1']);
      expect(await places(String.raw`^\w+\s\d\d$`, { path: 'ünïcode.txt' })).toEqual(['ünïcode.txt:2']);
    });

    test('an empty pattern matches every line, a bad one is explained', async () => {
      expect(await places('', { path: 'p/src/deep/util.ts' })).toHaveLength(5);
      const error = await refusal(files.grep('a(b'));
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('unclosed group') });
      expect(await places('a(b', { path: 'p', literal: true })).toEqual([]);
      for (const bad of ['(?=look)', String.raw`(a)\1`, String.raw`(\w{1000}){1000}`, 'x'.repeat(100_000)]) {
        await expect(files.grep(bad)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      }
      await expect(files.grep('a\nb', { literal: true })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(files.grep('a', { before: 21 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(files.grep('a', { include: '[' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(files.grep('a', { path: 'missing' })).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    });

    test('CRLF, no last line end, and bytes that are no text', async () => {
      await files.write('crlf.txt', 'one\r\ntwo\r\nthree');
      const { matches } = await files.grep('e$', { path: 'crlf.txt', before: 1 });
      expect(matches.map(({ line, text, before }) => [line, text, before])).toEqual([
        [1, 'one', []],
        [3, 'three', ['two']],
      ]);
      await files.write('latin1.txt', Buffer.from('caf\xe9 \xfcber needle\n', 'latin1'));
      const latin = await files.grep('needle', { path: 'latin1.txt' });
      expect(latin.matches).toMatchObject([{ line: 1, column: 11, text: 'caf\ufffd \ufffdber needle' }]);
      await files.write('wide.txt', '😀€é needle');
      expect((await files.grep('needle', { path: 'wide.txt' })).matches).toMatchObject([{ column: 5 }]);
    });

    test('a match in a very long line comes with what is around it', async () => {
      const long = `${'€'.repeat(700_000)}needle${'é'.repeat(500_000)}`;
      await files.write('long/bundle.js', `first\n${long}\nlast needle\n`);
      const { matches } = await files.grep('needle', { path: 'long' });
      expect(matches.map(({ line, column }) => [line, column])).toEqual([
        [2, 700_001],
        [3, 6],
      ]);
      const text = matches[0]?.text as string;
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(500);
      expect(text).toMatch(/^€+needleé+$/);
    });

    test('skips what is binary or too long, and says so', async () => {
      await files.writeMany({
        'skip/binary': Buffer.concat([Buffer.alloc(10), Buffer.from('needle')]),
        'skip/large.txt': `needle${'x'.repeat(5000)}`,
        'skip/small.txt': 'needle',
      });
      const result = await files.grep('needle', { path: 'skip', maxFileBytes: 5000 });
      expect(result).toMatchObject({ truncated: false, filesSearched: 1, filesSkipped: 2 });
      expect(result.matches.map(({ path }) => relative(path))).toEqual(['skip/small.txt']);
    });

    test('gives no more than was asked for, and says that there is more', async () => {
      await files.writeMany({ 'many/a': 'x\n'.repeat(50), 'many/b': 'x\n'.repeat(50) });
      const count = async (options: Parameters<Files['grep']>[1]) => {
        const { matches, truncated } = await files.grep('x', { path: 'many', ...options });
        return [matches.length, truncated];
      };
      expect(await count({})).toEqual([100, false]);
      expect(await count({ maxMatches: 100 })).toEqual([100, false]);
      expect(await count({ maxMatches: 99 })).toEqual([99, true]);
      expect(await count({ maxMatches: 0 })).toEqual([0, true]);
      expect(await count({ maxMatchesPerFile: 7 })).toEqual([14, true]);
      expect(await count({ maxMatchesPerFile: 50 })).toEqual([100, false]);
      expect(await count({ maxMatchesPerFile: 7, maxMatches: 10 })).toEqual([10, true]);
    });
  });

  test('searches 5,000 files', async () => {
    const many: Record<string, string> = {};
    for (let index = 0; index < 5000; index += 1) many[`big/${index % 50}/${index}.txt`] = `file ${index}\nshared\n`;
    await files.writeMany(many);
    expect((await files.glob('big/**/*.txt', { maxResults: 10_000 })).entries).toHaveLength(5000);
    const all = await files.grep('^shared$', { path: 'big', maxMatches: 10_000, before: 1 });
    expect([all.matches.length, all.filesSearched, all.truncated]).toEqual([5000, 5000, false]);
    expect(new Set(all.matches.map(({ before }) => before[0])).size).toBe(5000);
    expect(await places('file 4321$', { path: 'big' })).toEqual(['big/21/4321.txt:1']);
  });

  describe('replace', () => {
    test('changes the one place there is', async () => {
      await files.write('edit.txt', 'a\r\nb €\r\nc\r\n', { mode: 0o751 });
      expect(await files.replace('edit.txt', 'b €\r\n', 'B 😀\r\nnew\r\n')).toEqual({
        path: '/workspace/edit.txt',
        replacements: 1,
      });
      expect(await files.readText('edit.txt')).toBe('a\r\nB 😀\r\nnew\r\nc\r\n');
      expect(await files.stat('edit.txt')).toMatchObject({ mode: 0o751 });
    });

    test('refuses none and several, and says what to do', async () => {
      const text = 'x\nx x\nfoo\n\nx\n';
      await files.write('several.txt', text);
      const none = await refusal(files.replace('several.txt', 'bar', 'baz'));
      expect(none).toMatchObject({ code: 'INVALID_ARGUMENT', details: { count: 0, lines: [] } });
      expect(none.message).toContain('does not occur');
      const several = await refusal(files.replace('several.txt', 'x', 'y'));
      expect(several).toMatchObject({ code: 'INVALID_ARGUMENT', details: { count: 4, lines: [1, 2, 2, 5] } });
      expect(several.message).toContain('occurs 4 times, in lines 1, 2 and 5: give more of the text');
      const other = await refusal(files.replace('several.txt', 'x', 'y', { expected: 3 }));
      expect(other).toMatchObject({ code: 'INVALID_ARGUMENT', details: { count: 4 } });
      expect(await files.readText('several.txt')).toBe(text);
    });

    test('changes all places, or just as many as expected', async () => {
      await files.write('all.txt', 'aaaa b aa');
      expect(await files.replace('all.txt', 'aa', '', { expected: 3 })).toMatchObject({ replacements: 3 });
      expect(await files.readText('all.txt')).toBe(' b ');
      expect(await files.replace('all.txt', ' ', '--', { all: true })).toMatchObject({ replacements: 2 });
      expect(await files.readText('all.txt')).toBe('--b--');
    });

    test('refuses what cannot be edited', async () => {
      await expect(files.replace('several.txt', '', 'x')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(files.replace('missing', 'a', 'b')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
      await expect(files.replace('p', 'a', 'b')).rejects.toMatchObject({ code: 'IS_A_DIRECTORY' });
      await files.write('huge', Buffer.alloc(64 * 1024 * 1024 + 1, 'a'));
      await expect(files.replace('huge', 'b', 'c')).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
      await files.remove('huge');
    });
  });

  describe('lines of a file', () => {
    test('both ends are included, and past the end there is nothing', async () => {
      await files.write('lines.txt', 'one\ntwo\r\nthree\nfour');
      const lines = (fromLine?: number, toLine?: number) => files.readText('lines.txt', { fromLine, toLine });
      expect(await lines(1, 1)).toBe('one\n');
      expect(await lines(2, 3)).toBe('two\r\nthree\n');
      expect(await lines(3)).toBe('three\nfour');
      expect(await lines(undefined, 2)).toBe('one\ntwo\r\n');
      expect(await lines(4, 99)).toBe('four');
      expect(await lines(5, 99)).toBe('');
      await expect(lines(0, 1)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(lines(3, 2)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(files.readText('missing', { fromLine: 1 })).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
      await files.write('nothing.txt', '');
      expect(await files.readText('nothing.txt', { fromLine: 1 })).toBe('');
    });

    test('only they count for maxBytes', async () => {
      await files.write('wide.log', `${'x'.repeat(10_000)}\nshort\n${'y'.repeat(10_000)}\n`);
      expect(await files.readText('wide.log', { fromLine: 2, toLine: 2, maxBytes: 6 })).toBe('short\n');
      const tooMany = files.readText('wide.log', { fromLine: 2, toLine: 3, maxBytes: 6 });
      await expect(tooMany).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
    });

    test('one of a million lines is found where they are', async () => {
      const block = Buffer.from(`${'x'.repeat(99)}\n`.repeat(10_000));
      async function* million() {
        for (let index = 0; index < 100; index += 1) yield block;
        yield Buffer.from('the last line\n');
      }
      await files.write('million.txt', million());
      const options = { fromLine: 1_000_001, toLine: 1_000_001, maxBytes: 100 };
      expect(await files.readText('million.txt', options)).toBe('the last line\n');
      await files.remove('million.txt');
    });
  });

  test('tells binary content from text', async () => {
    await files.write('data.bin', Buffer.concat([Buffer.alloc(7999, 'x'), Buffer.alloc(1)]));
    await files.write('data.txt', Buffer.concat([Buffer.alloc(8000, 'x'), Buffer.alloc(1)]));
    expect([(await files.read('data.bin')).isBinary, (await files.read('data.txt')).isBinary]).toEqual([true, false]);
  });

  describe('append', () => {
    test('adds to the end, and makes the file', async () => {
      expect(await files.write('log/all', 'one\n', { append: true })).toEqual({
        path: '/workspace/log/all',
        sizeBytes: 4,
      });
      expect(await files.write('log/all', Buffer.from('two\n'), { append: true })).toMatchObject({ sizeBytes: 8 });
      async function* pieces() {
        for (let index = 0; index < 20; index += 1) yield Buffer.alloc(100_000, 'x');
      }
      await files.write('log/all', pieces(), { append: true });
      expect(await files.stat('log/all')).toMatchObject({ sizeBytes: 2_000_008, mode: 0o644 });
      expect(await files.readText('log/all', { toLine: 2 })).toBe('one\ntwo\n');
      expect((await files.list('log')).map((entry) => entry.name)).toEqual(['all']);
      await expect(files.write('log/all', '', { append: true, overwrite: false })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      });
      await expect(files.write('log', '', { append: true })).rejects.toMatchObject({ code: 'IS_A_DIRECTORY' });
    });

    test('what many append at once is all there, each whole', async () => {
      const lines = Array.from({ length: 50 }, (_, index) => `${String(index).repeat(2000)}\n`);
      await Promise.all(lines.map((line) => files.write('crowd', line, { append: true })));
      const text = await files.readText('crowd');
      expect(text.split('\n').slice(0, -1).sort()).toEqual(lines.map((line) => line.trim()).sort());
    });

    test('a source that breaks or is aborted adds nothing', async () => {
      await files.write('whole/file', 'kept');
      async function* broken() {
        yield Buffer.alloc(1_000_000);
        throw new Error('the source broke');
      }
      await expect(files.write('whole/file', broken(), { append: true })).rejects.toThrow('the source broke');
      const controller = new AbortController();
      async function* stalling() {
        yield Buffer.from('more');
        controller.abort(new Error('enough'));
        await new Promise(() => {});
      }
      const { signal } = controller;
      await expect(files.write('whole/file', stalling(), { append: true, signal })).rejects.toThrow('enough');
      expect(await files.readText('whole/file')).toBe('kept');
    });
  });

  describe('writeMany', () => {
    test('makes parents, takes any path, and empty files', async () => {
      await files.writeMany({ 'wm/a/b': 'one', '/tmp/wm': Buffer.from([1, 2]), 'wm/empty': '', 'wm/é': 'last' });
      expect(await files.readText('wm/a/b')).toBe('one');
      expect(await files.stat('/tmp/wm')).toMatchObject({ sizeBytes: 2 });
      expect(await files.stat('wm/empty')).toMatchObject({ sizeBytes: 0, mode: 0o644 });
      expect(await files.readText('wm/é')).toBe('last');
      await files.writeMany({});
      await files.writeMany({ 'wm/only-empty': '' });
      expect(await files.exists('wm/only-empty')).toBe(true);
    });

    test('the first bad path rejects and is named, and no file is half there', async () => {
      await files.write('bad/file', 'a file');
      const error = await refusal(files.writeMany({ 'bad/one': '1', 'bad/file/below': '2', 'bad/two': '3' }));
      expect(error).toMatchObject({ code: 'NOT_A_DIRECTORY', message: expect.stringContaining('bad/file') });
      expect((await files.list('bad')).map((entry) => entry.name)).toEqual(['file', 'one']);
      await expect(files.writeMany({ ok: '1', '': '2' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(files.writeMany({ ok: 7 as never })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    });

    test('2,000 files with 50 MB in all arrive as they were', async () => {
      const contents: Record<string, Buffer> = {};
      for (let index = 0; index < 2000; index += 1) contents[`lot/${index}`] = Buffer.alloc(index * 25, index % 251);
      contents['lot/large'] = Buffer.alloc(1_000_000, 'z');
      await files.writeMany(contents);
      const entries = await files.list('lot');
      expect(entries).toHaveLength(2001);
      for (const { name: file, sizeBytes } of entries) expect(sizeBytes).toBe(contents[`lot/${file}`]?.length);
      for (const index of [1, 700, 1999]) {
        const { bytes } = await files.read(`lot/${index}`);
        expect(Buffer.compare(bytes, contents[`lot/${index}`] as Buffer)).toBe(0);
      }
    });
  });
});

describeWithEngine('search and what commands leave behind', () => {
  const manager = testManager();
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await manager.open({ image: IMAGES.debian });
  });

  test('links are found but not followed, and nothing waits for a FIFO or a device', async () => {
    await sandbox.exec('mkdir -p odd/in && ln -s /etc/passwd odd/passwd && ln -s /etc odd/etc && mkfifo odd/fifo');
    await sandbox.exec('ln -s /dev/zero odd/zero; echo root > odd/in/file; chmod 0 odd/in/file');
    const { matches, filesSearched } = await sandbox.files.grep('root', { path: 'odd' });
    expect(matches.map(({ path }) => path)).toEqual(['/workspace/odd/in/file']);
    expect(filesSearched).toBe(1);
    const { entries } = await sandbox.files.glob('*', { path: 'odd' });
    expect(entries.map(({ name, type, target }) => [name, type, target])).toEqual([
      ['etc', 'symlink', '/etc'],
      ['fifo', 'other', undefined],
      ['in', 'dir', undefined],
      ['passwd', 'symlink', '/etc/passwd'],
      ['zero', 'symlink', '/dev/zero'],
    ]);
    for (const path of ['odd/fifo', 'odd/zero']) {
      await expect(sandbox.files.grep('x', { path })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(sandbox.files.replace(path, 'x', 'y')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(sandbox.files.write(path, 'x', { append: true })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
      });
    }
  });

  test('names that are no text are found', async () => {
    await sandbox.exec(`mkdir -p bytes && printf 'needle\\n' > "$(printf 'bytes/caf\\351.txt')"`);
    expect((await sandbox.files.glob('**/*.txt', { path: 'bytes' })).entries).toMatchObject([
      { name: 'caf\ufffd.txt' },
    ]);
    expect((await sandbox.files.grep('needle', { path: 'bytes' })).matches).toHaveLength(1);
  });

  test('a replaced file keeps its owner and its mode, and a link stays a link', async () => {
    const other = await manager.open({ image: IMAGES.debian, user: '1000:1000', session: 'replacing' });
    await other.files.write('mine', 'old', { mode: 0o640 });
    await other.files.write('theirs', 'old', { user: 'daemon', mode: 0o4755 });
    await other.exec('ln -s mine link');
    await other.files.replace('link', 'old', 'new');
    await other.files.replace('theirs', 'old', 'new');
    await other.files.write('link', '+', { append: true });
    const { stdout } = await other.exec('stat -c "%u:%g %a %F" mine theirs link; cat mine theirs');
    expect(stdout).toBe('1000:1000 640 regular file\n1:1 4755 regular file\n1000:1000 777 symbolic link\nnew+new');
  });

  test('an aborted search rejects with its reason, and the guest stops soon after', async () => {
    await sandbox.exec(
      'mkdir -p wide && cd wide && for a in $(seq 60); do mkdir $a; for b in $(seq 60); do echo $b > $a/$b; done; done',
    );
    const controller = new AbortController();
    const { signal } = controller;
    // As slow as it gets: every byte of every file on the image.
    const search = sandbox.files.grep('(?i)[a-z]+[^q]{30,60}zzz', { path: '/', gitignore: false, signal });
    const names = sandbox.files.glob('**/none', { path: '/', gitignore: false, signal });
    controller.abort(new Error('found elsewhere'));
    await expect(search).rejects.toThrow('found elsewhere');
    await expect(names).rejects.toThrow('found elsewhere');
    // Whatever else is asked is answered, on all the threads that there are.
    const copies = Array.from({ length: 8 }, (_, index) => sandbox.files.copy('wide/1', `copied/${index}`));
    await Promise.all(copies);
    expect((await sandbox.files.glob('copied/*/60')).entries).toHaveLength(8);
    await expect(sandbox.files.grep('x', { signal })).rejects.toThrow('found elsewhere');
  });
});
