import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeWithEngine, testManager } from '../support';
import { done, refused, tools } from './toolbox';

describeWithEngine('the tools for stored files', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'secret-place-'));
  const manager = testManager({ store: { type: 'folder', path: folder } });
  const [maker, user] = [tools(manager), tools(manager, { maxFileBytes: 1000 })];
  afterAll(() => rmSync(folder, { recursive: true }));

  test('carry a file from one sandbox to another, under a key of its own or a given one', async () => {
    await done(maker, 'sandbox_fs_write', { path: 'out/report.txt', content: 'done' });
    const published = await done(maker, 'sandbox_publish_file', { path: 'out/report.txt' });
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/);
    const key = expect.stringMatching(/^files\/f_/);
    expect(published).toEqual({ ok: true, key, path: '/workspace/out/report.txt', size_bytes: 4, sha256: digest });
    const staged = await done(user, 'sandbox_stage_file', { key: published.key, path: 'in/r.txt' });
    expect(staged).toMatchObject({ ok: true, path: '/workspace/in/r.txt', size_bytes: 4, sha256: published.sha256 });
    await done(maker, 'sandbox_publish_file', { path: 'out/report.txt', key: 'reports/may.txt' });
    expect(await done(user, 'sandbox_stage_file', { key: 'reports/may.txt' })).toMatchObject({
      path: '/workspace/may.txt',
    });
    expect(await done(user, 'sandbox_fs_read', { path: 'may.txt' })).toMatchObject({ content: 'done' });
  });

  test.each([
    ['a key under which nothing is', 'sandbox_stage_file', { key: 'files/none' }, 'FILE_NOT_FOUND'],
    ['a key that leads out', 'sandbox_stage_file', { key: '../../etc/passwd' }, 'INVALID_ARGUMENT'],
    ['an endless key', 'sandbox_stage_file', { key: 'k'.repeat(5000) }, 'INVALID_ARGUMENT'],
    ['a missing file', 'sandbox_publish_file', { path: 'none' }, 'FILE_NOT_FOUND'],
    ['a folder', 'sandbox_publish_file', { path: '.' }, 'IS_A_DIRECTORY'],
    [
      'a key that the store cannot have',
      'sandbox_publish_file',
      { path: 'f', key: `${'k'.repeat(300)}` },
      'INVALID_ARGUMENT',
    ],
  ])('say what is wrong with %s, and nothing of where the store is', async (_, name, input, code) => {
    await done(maker, 'sandbox_fs_write', { path: 'f', content: 'x' });
    const failure = await refused(maker, name, input);
    expect(failure.code).toBe(code);
    expect(JSON.stringify(failure)).not.toContain('secret-place');
  });

  test('keep to the bytes of the context', async () => {
    await done(maker, 'sandbox_fs_write', { path: 'large', content: 'x'.repeat(1001) });
    const { key } = await done(maker, 'sandbox_publish_file', { path: 'large' });
    expect(await refused(user, 'sandbox_stage_file', { key, path: 'large' })).toMatchObject({ code: 'LIMIT_EXCEEDED' });
    expect(await done(user, 'sandbox_fs_list')).not.toMatchObject({ entries: [{ name: 'large' }] });
  });
});
