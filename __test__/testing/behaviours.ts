/** What a manager does without running a program of the image: the same for a real one and for the fake. */
import type { Files, SandboxManager } from 'cofferdam';
import { failure } from '../faults/failure';
import { PROJECT } from '../project';
import { unique } from '../support';

export type Behaviour = [what: string, show: (manager: SandboxManager) => Promise<void>];

const refusal = async (call: Promise<unknown>) => (await failure(call)).code;

async function fresh(manager: SandboxManager): Promise<Files> {
  return (await manager.open({ session: 'isolated' })).files;
}

const files: Behaviour[] = [
  [
    'writes with parents and reads back, in part, with caps',
    async (manager) => {
      const disk = await fresh(manager);
      expect(await disk.write('a/b/c.txt', 'h€llo')).toEqual({ path: '/workspace/a/b/c.txt', sizeBytes: 7 });
      expect(await disk.readText('a/b/c.txt')).toBe('h€llo');
      const part = await disk.read('/workspace/a/b/c.txt', { offset: 1, maxBytes: 3 });
      expect([part.text(), part.truncated, part.sizeBytes, part.isBinary]).toEqual(['€', true, 7, false]);
      const past = await disk.read('a/b/c.txt', { offset: 100 });
      expect([past.text(), past.truncated, past.sizeBytes]).toEqual(['', false, 7]);
      expect(await refusal(disk.readText('a/b/c.txt', { maxBytes: 6 }))).toBe('LIMIT_EXCEEDED');
      await disk.write('large', Buffer.alloc(300_000, 7));
      expect(await disk.read('large')).toMatchObject({ truncated: true, sizeBytes: 300_000 });
    },
  ],
  [
    'answers for what is missing, a directory, or a path through a file',
    async (manager) => {
      const disk = await fresh(manager);
      await disk.write('file', 'x');
      await disk.write('dir/inside', 'y');
      for (const missing of ['missing', 'missing/x']) {
        expect(await refusal(disk.read(missing))).toBe('FILE_NOT_FOUND');
        expect(await refusal(disk.list(missing))).toBe('FILE_NOT_FOUND');
        expect(await refusal(disk.move(missing, 'x'))).toBe('FILE_NOT_FOUND');
        expect(await refusal(disk.copy(missing, 'x'))).toBe('FILE_NOT_FOUND');
        expect(await refusal(disk.replace(missing, 'a', 'b'))).toBe('FILE_NOT_FOUND');
      }
      for (const none of ['missing', 'file/x']) {
        expect([await disk.stat(none), await disk.exists(none), await disk.remove(none)]).toEqual([null, false, false]);
      }
      expect(await refusal(disk.read('dir'))).toBe('IS_A_DIRECTORY');
      expect(await refusal(disk.write('dir', 'x'))).toBe('IS_A_DIRECTORY');
      expect(await refusal(disk.remove('dir'))).toBe('IS_A_DIRECTORY');
      expect(await refusal(disk.copy('file', 'dir'))).toBe('IS_A_DIRECTORY');
      expect(await refusal(disk.move('file', 'dir'))).toBe('IS_A_DIRECTORY');
      expect(await refusal(disk.read('file/x'))).toBe('NOT_A_DIRECTORY');
      expect(await refusal(disk.write('file/x/y', ''))).toBe('NOT_A_DIRECTORY');
      expect(await refusal(disk.mkdir('file/x'))).toBe('NOT_A_DIRECTORY');
      expect(await refusal(disk.list('file'))).toBe('NOT_A_DIRECTORY');
      expect(await refusal(disk.move('dir', 'file'))).toBe('NOT_A_DIRECTORY');
      expect(await refusal(disk.mkdir('file'))).toBe('FILE_EXISTS');
      expect(await refusal(disk.copy('dir', 'file'))).toBe('FILE_EXISTS');
      expect(await refusal(disk.move('dir', 'dir/below'))).toBe('INVALID_ARGUMENT');
      expect(await refusal(disk.copy('dir', 'dir/below'))).toBe('INVALID_ARGUMENT');
      for (const bad of ['', 'a\0b', 'n'.repeat(256), 'd/'.repeat(2_100), '\ud800']) {
        expect(await refusal(disk.read(bad))).toBe('INVALID_ARGUMENT');
        expect(await refusal(disk.write(bad, ''))).toBe('INVALID_ARGUMENT');
        expect(await refusal(disk.stat(bad))).toBe('INVALID_ARGUMENT');
      }
    },
  ],
  [
    'keeps modes, refuses to overwrite when told, appends',
    async (manager) => {
      const disk = await fresh(manager);
      await disk.write('run.sh', 'one', { mode: 0o755 });
      await disk.write('run.sh', 'two');
      expect(await disk.stat('run.sh')).toMatchObject({ name: 'run.sh', type: 'file', mode: 0o755, sizeBytes: 3 });
      expect(await refusal(disk.write('run.sh', 'no', { overwrite: false }))).toBe('FILE_EXISTS');
      expect(await disk.write('run.sh', '!', { append: true })).toMatchObject({ sizeBytes: 4 });
      expect(await refusal(disk.write('x', '', { append: true, overwrite: false }))).toBe('INVALID_ARGUMENT');
      expect(await disk.readText('run.sh')).toBe('two!');
      await disk.mkdir('made/by/us', { mode: 0o700 });
      await disk.mkdir('made/by/us');
      expect(await disk.stat('made/by/us')).toMatchObject({ type: 'dir', mode: 0o700 });
    },
  ],
  [
    'lists, moves, copies and removes trees',
    async (manager) => {
      const disk = await fresh(manager);
      await disk.writeMany({ 'tree/b': '1', 'tree/a/x': '22', 'tree/c': '' });
      expect((await disk.list('tree')).map(({ path, type }) => [path, type])).toEqual([
        ['/workspace/tree/a', 'dir'],
        ['/workspace/tree/b', 'file'],
        ['/workspace/tree/c', 'file'],
      ]);
      expect(await disk.list('tree', { recursive: true })).toHaveLength(4);
      expect(await refusal(disk.list('tree', { maxEntries: 2 }))).toBe('LIMIT_EXCEEDED');
      await disk.copy('tree', 'copied');
      await disk.move('tree', 'deep/moved');
      expect(await disk.exists('tree')).toBe(false);
      expect(await disk.readText('deep/moved/a/x')).toBe('22');
      expect(await refusal(disk.move('copied', 'deep/moved'))).toBe('FILE_EXISTS');
      await disk.copy('copied', 'deep/moved');
      expect(await disk.remove('copied', { recursive: true })).toBe(true);
      expect((await disk.list('.', { recursive: true })).map(({ path }) => path)).toEqual(
        ['deep', 'deep/moved', 'deep/moved/a', 'deep/moved/a/x', 'deep/moved/b', 'deep/moved/c'].map(
          (at) => `/workspace/${at}`,
        ),
      );
    },
  ],
  [
    'streams both ways, and a source that breaks leaves the old file',
    async (manager) => {
      const disk = await fresh(manager);
      const pieces = async function* (broken = false) {
        for (let index = 0; index < 5; index += 1) yield Buffer.alloc(100_000, index);
        if (broken) throw new Error('the source broke');
      };
      expect(await disk.write('streamed', pieces())).toMatchObject({ sizeBytes: 500_000 });
      await expect(disk.write('streamed', pieces(true))).rejects.toThrow('the source broke');
      let size = 0;
      for await (const piece of disk.stream('streamed', { offset: 1 })) size += piece.length;
      expect(size).toBe(499_999);
    },
  ],
  [
    'replaces one text, or all, and says how often it found it otherwise',
    async (manager) => {
      const disk = await fresh(manager);
      await disk.write('several.txt', 'x\nx x\nfoo\n\nx\n');
      const several = await failure(disk.replace('several.txt', 'x', 'y'));
      expect(several).toMatchObject({ code: 'INVALID_ARGUMENT', details: { count: 4, lines: [1, 2, 2, 5] } });
      expect(several.message).toContain('occurs 4 times, in lines 1, 2 and 5');
      expect(await failure(disk.replace('several.txt', 'bar', 'y'))).toMatchObject({
        details: { count: 0, lines: [] },
      });
      expect(await refusal(disk.replace('several.txt', '', 'y'))).toBe('INVALID_ARGUMENT');
      expect(await disk.replace('several.txt', 'foo', '€')).toEqual({
        path: '/workspace/several.txt',
        replacements: 1,
      });
      expect(await disk.replace('several.txt', 'x', 'y', { all: true })).toMatchObject({ replacements: 4 });
      expect(await refusal(disk.replace('several.txt', 'y', 'z', { expected: 3 }))).toBe('INVALID_ARGUMENT');
      expect(await disk.readText('several.txt')).toBe('y\ny y\n€\n\ny\n');
    },
  ],
  [
    'gives lines of a file',
    async (manager) => {
      const disk = await fresh(manager);
      await disk.write('lines.txt', 'one\ntwo\r\nthree\nfour');
      expect(await disk.readText('lines.txt', { fromLine: 2, toLine: 3 })).toBe('two\r\nthree\n');
      expect(await disk.readText('lines.txt', { fromLine: 4 })).toBe('four');
      expect(await disk.readText('lines.txt', { fromLine: 9 })).toBe('');
      expect(await refusal(disk.readText('lines.txt', { fromLine: 1, maxBytes: 3 }))).toBe('LIMIT_EXCEEDED');
      expect(await refusal(disk.readText('lines.txt', { fromLine: 0 }))).toBe('INVALID_ARGUMENT');
    },
  ],
];

const search: Behaviour[] = [
  [
    'finds paths by patterns and the rules of .gitignore',
    async (manager) => {
      const disk = await fresh(manager);
      await disk.writeMany(PROJECT);
      const names = async (...[pattern, options]: Parameters<Files['glob']>) =>
        (await disk.glob(pattern, { path: 'p', ...options })).entries.map(({ path }) =>
          path.replace('/workspace/p/', ''),
        );
      expect(await names('*.md')).toEqual(['README.md']);
      expect(await names('**/*.ts')).toEqual(['src/deep/util.ts', 'src/main.ts']);
      expect(await names('src/*')).toEqual(['src/deep', 'src/main.ts']);
      expect(await names('**/*/', { path: 'p/src' })).toEqual(['src/deep', 'src/deep/dist']);
      expect(await names(['**/*.{md,js}', './src/[l-n]ain.ts'])).toEqual([
        'README.md',
        'src/deep/dist/in.js',
        'src/main.ts',
      ]);
      expect(await names('**/*.log')).toEqual(['src/deep/kept.log']);
      expect(await names('**/*.log', { gitignore: false })).toEqual(['src/deep/kept.log', 'trace.log']);
      expect(await names('.git/**')).toEqual([]);
      expect(await names('**', { hidden: false, exclude: ['deep', '*.md'] })).toEqual(['src', 'src/main.ts']);
      expect(await names('.*', { hidden: false, exclude: ['!.env'] })).toEqual(['.env']);
      const few = await disk.glob('**', { path: 'p', maxResults: 3 });
      expect([few.entries.length, few.truncated]).toEqual([3, true]);
      for (const bad of ['/etc/*', '../*', '', '[', 'a{b'])
        expect(await refusal(disk.glob(bad))).toBe('INVALID_ARGUMENT');
      expect(await refusal(disk.glob('*', { path: 'missing' }))).toBe('FILE_NOT_FOUND');
      expect(await refusal(disk.glob('*', { path: 'p/README.md' }))).toBe('NOT_A_DIRECTORY');
    },
  ],
  [
    'finds lines by expressions, with what is around them',
    async (manager) => {
      const disk = await fresh(manager);
      await disk.writeMany(PROJECT);
      const places = async (...[pattern, options]: Parameters<Files['grep']>) =>
        (await disk.grep(pattern, { path: 'p', ...options })).matches.map(
          ({ path, line, column }) => `${path.replace('/workspace/p/', '')}:${line}:${column}`,
        );
      expect(await places('needle')).toEqual([
        '.env:1:1',
        'src/deep/dist/in.js:1:1',
        'src/deep/kept.log:1:1',
        'src/deep/util.ts:3:1',
        'src/main.ts:2:7',
        'src/main.ts:3:10',
      ]);
      expect(await places('needle', { gitignore: false, include: '*.log' })).toEqual([
        'src/deep/kept.log:1:1',
        'trace.log:1:1',
      ]);
      expect(await places('needle', { include: 'src/*.ts' })).toEqual(['src/main.ts:2:7', 'src/main.ts:3:10']);
      expect(await places('needle', { path: 'p/trace.log' })).toEqual(['trace.log:1:1']);
      expect(await places('NEEDLE', { path: 'p/README.md', ignoreCase: true })).toEqual(['README.md:3:3']);
      expect(await places(String.raw`\bneedle\b\s*=`, { path: 'p/src' })).toEqual(['src/main.ts:2:7']);
      expect(await places('{ needle }', { path: 'p/src', literal: true })).toEqual(['src/main.ts:3:8']);
      const around = await disk.grep('need', { path: 'p/src/deep', include: ['*.ts'], before: 5, after: 1 });
      expect(around).toMatchObject({
        matches: [{ text: 'needle', before: ['one', 'two'], after: ['four'] }],
        truncated: false,
        filesSearched: 1,
        filesSkipped: 0,
      });
      await disk.write('ünïcode.txt', 'ÄRGER\nÄpfel 7٣\n😀€é needle');
      const unicode = { path: 'ünïcode.txt' };
      expect((await disk.grep('ärger', { ...unicode, ignoreCase: true })).matches).toHaveLength(1);
      expect((await disk.grep(String.raw`^\w+\s\d\d$`, unicode)).matches).toMatchObject([{ line: 2 }]);
      expect((await disk.grep('needle', unicode)).matches).toMatchObject([{ column: 5 }]);
      for (const bad of ['a(b', '(?=look)', String.raw`(a)\1`])
        expect(await refusal(disk.grep(bad))).toBe('INVALID_ARGUMENT');
      await disk.writeMany({ 'many/a': 'x\n'.repeat(50), 'many/b': 'x\n'.repeat(50), 'many/c': Buffer.from([0, 120]) });
      const capped = await disk.grep('x', { path: 'many', maxMatchesPerFile: 7, maxMatches: 10 });
      expect([capped.matches.length, capped.truncated]).toEqual([10, true]);
      expect(await disk.grep('x', { path: 'many' })).toMatchObject({
        truncated: false,
        filesSearched: 2,
        filesSkipped: 1,
      });
    },
  ],
];

const sessions: Behaviour[] = [
  [
    'shares a sandbox by key, and says who made it',
    async (manager) => {
      const workflow = unique();
      const first = await manager.open({ scope: { workflow, agent: 'a' } });
      const second = await manager.open({ scope: { workflow, agent: 'b' } });
      const other = await manager.open({ scope: { workflow }, session: 'mine:too' });
      expect([first.key, other.key]).toEqual([`workflow:${workflow}:default`, `workflow:${workflow}:mine%3Atoo`]);
      expect([first.created, second.created, other.created]).toEqual([true, false, true]);
      expect(second.id).toBe(first.id);
      expect(first.id).toMatch(/^sbx_/);
      await first.files.write('note', 'shared');
      expect(await second.files.readText('note')).toBe('shared');
      expect(await other.files.exists('note')).toBe(false);
      expect(await manager.get(first.id)).toMatchObject({ id: first.id, key: first.key, created: false });
      const listed = await manager.list({ scope: { workflow } });
      expect(listed.map(({ id }) => id).sort()).toEqual([first.id, other.id].sort());
      expect(listed.map(({ session }) => session).sort()).toEqual(['default', 'mine:too']);
      expect([first.session, other.session]).toEqual(['default', 'mine:too']);
      expect(listed.map(({ isolated }) => isolated)).toEqual([false, false]);
      expect(await refusal(manager.open({ scope: { workflow }, image: 'other:1', pull: 'never' }))).toBe(
        'INVALID_ARGUMENT',
      );
      expect(await manager.endScope({ workflow })).toEqual({ closed: 2 });
      expect(await manager.list({ scope: { workflow } })).toEqual([]);
    },
  ],
  [
    'makes isolated ones that nobody shares, with files, labels and limits',
    async (manager) => {
      const options = {
        session: 'isolated',
        files: { 'in/a.txt': 'A' },
        labels: { team: 'blue' },
        limits: { pids: 64 },
      };
      const [one, two] = [await manager.open(options), await manager.open({ session: 'isolated' })];
      expect(one.id).not.toBe(two.id);
      expect(await one.files.readText('in/a.txt')).toBe('A');
      const again = await manager.open({ session: one.session });
      expect(again).toMatchObject({ id: one.id, created: false });
      expect(await one.info()).toMatchObject({
        id: one.id,
        session: one.session,
        isolated: true,
        state: 'running',
        workdir: '/workspace',
        network: false,
        labels: { team: 'blue' },
        limits: { pids: 64 },
        createdAt: expect.any(Date),
      });
    },
  ],
  [
    'takes no call after the end of a sandbox',
    async (manager) => {
      const scope = { workflow: unique() };
      const sandbox = await manager.open({ scope });
      await sandbox.close();
      await sandbox.close();
      for (const call of [sandbox.exec('true'), sandbox.files.read('x'), sandbox.info(), sandbox.files.stat('x')]) {
        expect(await refusal(call)).toBe('SANDBOX_CLOSED');
      }
      expect(await refusal(manager.get(sandbox.id))).toBe('SANDBOX_NOT_FOUND');
      const next = await manager.open({ scope });
      expect(next.created).toBe(true);
      expect(next.id).not.toBe(sandbox.id);
    },
  ],
  [
    'refuses what cannot be meant, at the place where it was called',
    async (manager) => {
      const sandbox = await manager.open({ session: 'isolated' });
      for (const command of ['', [], [''], 'a\0b', 5 as never])
        expect(await refusal(sandbox.exec(command))).toBe('INVALID_ARGUMENT');
      expect(await refusal(sandbox.exec('true', { timeoutMs: -1 }))).toBe('INVALID_ARGUMENT');
      expect(await refusal(manager.open({ scope: { workflow: '' } }))).toBe('INVALID_ARGUMENT');
      expect(await refusal(manager.endScope({} as never))).toBe('INVALID_ARGUMENT');
      expect(await refusal(sandbox.process('exec_nope'))).toBe('PROCESS_NOT_FOUND');
      const error = await failure(sandbox.files.read('missing'));
      expect(error.stack).toContain('behaviours.ts');
      expect(await refusal(sandbox.publish('missing'))).toBe('INVALID_ARGUMENT');
    },
  ],
];

export const behaviours: Behaviour[] = [...files, ...search, ...sessions];
