import { createHash } from 'node:crypto';
import { describeWithEngine, testManager } from '../support';
import { done, refused, tools } from './toolbox';

describeWithEngine('the tools for files', () => {
  const manager = testManager({ policy: { blockedPaths: ['/etc/shadow'] } });
  const own = tools(manager);
  const write = (path: string, content: string, more = {}) => done(own, 'sandbox_fs_write', { path, content, ...more });
  const read = (path: string, more = {}) => done(own, 'sandbox_fs_read', { path, ...more });

  describe('sandbox_fs_write', () => {
    test.each([
      ['text', { content: 'h€llo\n' }, 'h€llo\n'],
      ['text by name', { content: 'x', encoding: 'text' }, 'x'],
      ['text under its other name', { contents: 'h€llo' }, 'h€llo'],
      ['base64', { content: 'aOKCrGxsbw==', encoding: 'base64' }, 'h€llo'],
      ['base64 without its end', { content: 'aOKCrGxsbw', encoding: 'base64' }, 'h€llo'],
      ['base64 in lines', { content: 'aOKC\nrGxs\r\nbw==\n', encoding: 'base64' }, 'h€llo'],
      ['base64 under its other name', { contents_b64: 'aOKCrGxsbw==' }, 'h€llo'],
      ['nothing', { content: '' }, ''],
    ])('takes %s', async (_, input, text) => {
      const written = await done(own, 'sandbox_fs_write', { path: 'new/dir/file', ...input });
      expect(written).toEqual({ ok: true, path: '/workspace/new/dir/file', size_bytes: Buffer.byteLength(text) });
      expect(await read('new/dir/file')).toMatchObject({ content: text });
    });

    test.each(['0755', '755', '0o755'])('sets the mode %s, and refuses to replace a file when told', async (mode) => {
      await done(own, 'sandbox_fs_delete', { path: 'run.sh' });
      await write('run.sh', '#!/bin/sh\necho ran\n', { mode });
      expect(await done(own, 'sandbox_exec', { command: ['./run.sh'] })).toMatchObject({ stdout: 'ran\n' });
      const failure = await refused(own, 'sandbox_fs_write', { path: 'run.sh', content: 'x', overwrite: false });
      expect(failure).toMatchObject({ code: 'FILE_EXISTS', hint: expect.stringContaining('overwrite') });
    });

    test.each([
      ['no path', { content: 'x' }, 'path: required'],
      ['no content', { path: 'a' }, 'content: required'],
      ['two contents', { path: 'a', content: 'x', contents_b64: 'eA==' }, 'both'],
      ['what is no base64', { path: 'a', content: 'é!', encoding: 'base64' }, 'base64'],
      ['what is no base64 by its length', { path: 'a', contents_b64: 'AAAAA' }, 'base64'],
      ['half of a character', { path: 'a', content: '\udc00' }, 'Unicode'],
      ['a mode in words', { path: 'a', content: 'x', mode: 'rwx' }, 'octal'],
    ])('says what is wrong with %s', async (_, input, word) => {
      const failure = await refused(own, 'sandbox_fs_write', input);
      expect(failure).toMatchObject({ code: 'INVALID_ARGUMENT', error: expect.stringContaining(word) });
    });

    test('keeps to the bytes and the number of files of the context', async () => {
      const bound = tools(manager, { maxFileBytes: 10, maxFiles: 2 });
      const put = (path: string, content: string) => bound.call('sandbox_fs_write', { path, content });
      expect(await put('a', '0123456789')).toMatchObject({ ok: true });
      expect(await put('a', '0123456789a')).toMatchObject({ ok: false, code: 'LIMIT_EXCEEDED' });
      expect(await put('a', '€€€€')).toMatchObject({ ok: false, code: 'LIMIT_EXCEEDED' });
      const edit = (new_text: string, more = {}) =>
        bound.call('sandbox_fs_edit', { path: 'a', old_text: '9', new_text, ...more });
      expect(await edit('9+')).toMatchObject({ ok: false, code: 'LIMIT_EXCEEDED' });
      expect(await edit('9+', { replace_all: true })).toMatchObject({ ok: false, code: 'LIMIT_EXCEEDED' });
      expect(await edit('!', { replace_all: true })).toMatchObject({ ok: true });
      expect(await put('./b', '')).toMatchObject({ ok: true });
      expect(await put('/workspace/x/../b', 'again')).toMatchObject({ ok: true });
      expect(await put('c', '')).toMatchObject({
        ok: false,
        code: 'LIMIT_EXCEEDED',
        error: expect.stringContaining('2 files'),
      });
    });
  });

  describe('sandbox_fs_read', () => {
    test('gives text under both names, and sends it once', async () => {
      await write('text', 'a\nb\n');
      const result = await read('text');
      expect(result).toEqual({
        path: '/workspace/text',
        content: 'a\nb\n',
        encoding: 'text',
        truncated: false,
        size_bytes: 4,
      });
      expect(result.contents).toBe('a\nb\n');
      expect(JSON.parse(JSON.stringify(result))).not.toHaveProperty('contents');
    });

    test('gives what is not text as base64, and either as what is asked for', async () => {
      await write('bytes', 'AP/+gA==', { encoding: 'base64' });
      const binary = await read('bytes');
      expect(binary).toMatchObject({
        content: 'AP/+gA==',
        contents_b64: 'AP/+gA==',
        encoding: 'base64',
        size_bytes: 4,
      });
      expect(await read('bytes', { encoding: 'text' })).toMatchObject({ content: '\0���', encoding: 'text' });
      await write('text', 'hi');
      expect(await read('text', { encoding: 'base64' })).toMatchObject({ content: 'aGk=', encoding: 'base64' });
    });

    test('gives a long file that is not text in parts', async () => {
      await done(own, 'sandbox_exec', { command: 'head -c 150000 /dev/urandom > noise; sha256sum < noise' });
      const parts: Buffer[] = [];
      for (let offset = 0; ; ) {
        const part = await read('noise', { offset });
        expect((part.content as string).length).toBeLessThanOrEqual(64 * 1024);
        parts.push(Buffer.from(part.content as string, 'base64'));
        if (!part.truncated) break;
        offset = Number(/offset (\d+)/.exec(part.note as string)?.[1]);
      }
      const { stdout } = await done(own, 'sandbox_exec', { command: 'sha256sum < noise' });
      expect(stdout).toContain(createHash('sha256').update(Buffer.concat(parts)).digest('hex'));
    });

    test('gives head and tail of a long file, and the rest by offset', async () => {
      const whole = Array.from({ length: 30_000 }, (_, index) => `${index} é€😀\n`).join('');
      await write('long', whole);
      const { content, truncated, note, size_bytes } = await read('long');
      expect({ truncated, size_bytes }).toEqual({ truncated: true, size_bytes: Buffer.byteLength(whole) });
      expect(Buffer.byteLength(content as string)).toBeLessThanOrEqual(64 * 1024);
      const [head, tail] = (content as string).split(/\n\[… \d+ bytes left out …\]\n/) as [string, string];
      expect(whole.startsWith(head) && whole.endsWith(tail)).toBe(true);
      expect(note).toContain('from_line');

      let text = '';
      for (let offset = 0; ; ) {
        const part = await read('long', { offset });
        text += part.content;
        if (!part.truncated) break;
        offset = Number(/offset (\d+)/.exec(part.note as string)?.[1]);
      }
      expect(text).toBe(whole);
    });

    test('gives a part by bytes or by lines', async () => {
      await write('lines', 'one\ntwo\nthree\nfour\n');
      expect(await read('lines', { max_bytes: 5 })).toMatchObject({
        content: 'one\nt',
        truncated: true,
        size_bytes: 19,
      });
      expect(await read('lines', { offset: 4, max_bytes: 3 })).toMatchObject({ content: 'two', truncated: true });
      expect(await read('lines', { offset: 14 })).toMatchObject({ content: 'four\n', truncated: false });
      expect(await read('lines', { from_line: 2, to_line: 3 })).toMatchObject({
        content: 'two\nthree\n',
        size_bytes: 19,
      });
      expect(await read('lines', { from_line: 4 })).toMatchObject({ content: 'four\n', truncated: false });
      const backwards = await refused(own, 'sandbox_fs_read', { path: 'lines', from_line: 3, to_line: 2 });
      expect(backwards.error).toContain('to_line 2 is before from_line 3');
      expect(await read('lines', { from_line: 9 })).toMatchObject({ content: '', note: 'The file has no such lines.' });
    });

    test.each([
      ['a missing file', 'nope/x', 'FILE_NOT_FOUND'],
      ['a folder', '.', 'IS_A_DIRECTORY'],
      ['a path through a file', 'lines/x', 'NOT_A_DIRECTORY'],
      ['a device', '/dev/zero', 'INVALID_ARGUMENT'],
      ['a blocked path', '/etc/shadow', 'PATH_BLOCKED'],
      ['a blocked path by a detour', '../etc/../etc/shadow', 'PATH_BLOCKED'],
      ['an empty path', '', 'INVALID_ARGUMENT'],
      ['a NUL', 'a\0b', 'INVALID_ARGUMENT'],
      ['half of a character', 'a\ud800', 'INVALID_ARGUMENT'],
      ['an endless path', 'd/'.repeat(50_000), 'INVALID_ARGUMENT'],
    ])('says what is wrong with %s', async (_, path, code) => {
      await write('lines', 'x');
      expect((await refused(own, 'sandbox_fs_read', { path })).code).toBe(code);
    });
  });

  describe('sandbox_fs_list and sandbox_fs_delete', () => {
    test('give entries with all the fields a model may look for', async () => {
      await done(own, 'sandbox_exec', {
        command: 'mkdir -p list/sub && cd list && printf abc > f && chmod 640 f && ln -s f l',
      });
      const { entries, truncated, total } = await done(own, 'sandbox_fs_list', { path: 'list', recursive: true });
      expect({ truncated, total }).toEqual({ truncated: false, total: 3 });
      const [file, link, folder] = entries as Record<string, unknown>[];
      expect(file).toEqual({
        name: 'f',
        path: '/workspace/list/f',
        type: 'file',
        size_bytes: 3,
        mode: '0640',
        mtime_unix: expect.any(Number),
      });
      expect(file?.size).toBe(3);
      expect(Math.abs((file?.mtime_unix as number) - Date.now() / 1000)).toBeLessThan(600);
      expect(link).toMatchObject({ type: 'symlink', target: 'f' });
      expect(folder).toMatchObject({ name: 'sub', type: 'dir' });
    });

    test.each(['.', '/workspace/', '/', '..', 'x/..'])(
      'keep the working directory from being deleted as %s',
      async (path) => {
        const failure = await refused(own, 'sandbox_fs_delete', { path, recursive: true });
        expect(failure).toMatchObject({
          code: 'INVALID_ARGUMENT',
          error: expect.stringContaining('cannot be deleted'),
        });
        await done(own, 'sandbox_exec', { command: 'mkdir -p /work /workspace-2' });
        expect(await done(own, 'sandbox_fs_delete', { path: '/work', recursive: true })).toMatchObject({
          deleted: true,
        });
        expect(await done(own, 'sandbox_fs_delete', { path: '../workspace-2', recursive: true })).toMatchObject({
          deleted: true,
        });
      },
    );

    test('show a part of a large folder, and say how to see the rest', async () => {
      await done(own, 'sandbox_exec', { command: 'mkdir -p many && cd many && seq 600 | xargs touch' });
      const listed = await done(own, 'sandbox_fs_list', { path: 'many' });
      expect(listed).toMatchObject({ truncated: true, total: 600, note: expect.stringContaining('sandbox_fs_search') });
      expect(listed.entries).toHaveLength(500);
      await done(own, 'sandbox_exec', { command: 'cd many && seq 25000 | xargs touch' });
      expect(await refused(own, 'sandbox_fs_list', { path: 'many' })).toMatchObject({ code: 'LIMIT_EXCEEDED' });
    });

    test('delete a file, a folder only when told, and nothing twice', async () => {
      await write('del/f', 'x');
      expect(await done(own, 'sandbox_fs_delete', { path: 'del/f' })).toEqual({
        ok: true,
        deleted: true,
        path: '/workspace/del/f',
      });
      expect(await done(own, 'sandbox_fs_delete', { path: 'del/f' })).toMatchObject({ ok: true, deleted: false });
      expect(await refused(own, 'sandbox_fs_delete', { path: 'del' })).toMatchObject({
        code: 'IS_A_DIRECTORY',
        hint: expect.stringContaining('recursive'),
      });
      expect(await done(own, 'sandbox_fs_delete', { path: 'del', recursive: true })).toMatchObject({ deleted: true });
      expect(await refused(own, 'sandbox_fs_list', { path: 'del' })).toMatchObject({ code: 'FILE_NOT_FOUND' });
    });
  });

  describe('sandbox_fs_edit and sandbox_fs_search', () => {
    test('change the one place that is meant, or all', async () => {
      await write('edit.py', 'a = 1\nb = 1\n');
      const edit = (input: object) => own.call('sandbox_fs_edit', { path: 'edit.py', ...input });
      expect(await edit({ old_text: 'a = 1', new_text: 'a = 2' })).toEqual({
        ok: true,
        path: '/workspace/edit.py',
        replacements: 1,
      });
      expect(await edit({ old_text: '=', new_text: ':=' })).toMatchObject({
        code: 'INVALID_ARGUMENT',
        error: expect.stringContaining('2'),
      });
      expect(await edit({ old_text: '=', new_text: ':=', replace_all: true })).toMatchObject({ replacements: 2 });
      expect(await edit({ old_text: 'zz', new_text: '' })).toMatchObject({
        error: expect.stringContaining('does not occur'),
      });
      expect(await edit({ old_text: '\nb := 1', new_text: '' })).toMatchObject({ ok: true });
      expect(await read('edit.py')).toMatchObject({ content: 'a := 2\n' });
      expect(await refused(own, 'sandbox_fs_edit', { path: 'nope', old_text: 'a', new_text: 'b' })).toMatchObject({
        code: 'FILE_NOT_FOUND',
      });
    });

    test('find lines, files, and lines in such files', async () => {
      await write('search/a.ts', 'one\nTWO (2)\nthree\n');
      await write('search/b.md', 'two\n');
      const search = (input: object) => done(own, 'sandbox_fs_search', { path: 'search', ...input });
      const line = { path: '/workspace/search/a.ts', line: 2, column: 1, text: 'TWO (2)' };
      expect(await search({ pattern: 'TWO' })).toEqual({ matches: [line], files_searched: 2, truncated: false });
      expect(await search({ pattern: 'two', ignore_case: true })).toMatchObject({ matches: [line, { text: 'two' }] });
      expect(await search({ query: 'two', ignore_case: true, include: '*.ts' })).toMatchObject({ matches: [line] });
      expect(await search({ pattern: '(2)', literal: true, context_lines: 1 })).toMatchObject({
        matches: [{ text: 'TWO (2)', before: ['one'], after: ['three'] }],
      });
      expect(await search({ glob: '**/*.md' })).toMatchObject({
        files: [{ path: '/workspace/search/b.md', size_bytes: 4 }],
      });
      expect(await search({ pattern: '.', max_results: 1 })).toMatchObject({
        truncated: true,
        note: expect.any(String),
      });
    });

    test('find no more than fits a result', async () => {
      await done(own, 'sandbox_exec', { command: 'mkdir -p wide && yes "$(printf %0400d 0)" | head -n 1000 > wide/f' });
      const found = await done(own, 'sandbox_fs_search', { pattern: '0', path: 'wide', max_results: 1000 });
      expect(found).toMatchObject({ truncated: true });
      expect(JSON.stringify(found).length).toBeLessThan(100_000);
      expect((found.matches as unknown[]).length).toBeGreaterThan(100);
    });

    test.each([
      ['nothing to look for', {}, 'pattern or glob'],
      ['a broken expression', { pattern: '(' }, 'pattern'],
      ['look-around', { pattern: '(?=x)' }, 'look'],
    ])('say what is wrong with %s', async (_, input, word) => {
      const failure = await refused(own, 'sandbox_fs_search', input);
      expect(failure).toMatchObject({ code: 'INVALID_ARGUMENT', error: expect.stringContaining(word) });
    });
  });
});
