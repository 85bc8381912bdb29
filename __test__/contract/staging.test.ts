import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ObjectStoreOptions, Sandbox } from 'cofferdam';
import { describeWithNats, NatsServer } from '../nats-server';
import { S3Server } from '../s3-server';
import { describeWithEngine, IMAGES, testManager } from '../support';

const MB = 1024 * 1024;
const sha256 = (data: Uint8Array | string) => createHash('sha256').update(data).digest('hex');

/** What every store must do. */
function contract(options: () => ObjectStoreOptions) {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await testManager({ store: options() }).open({ image: IMAGES.alpine });
  });

  test.each([
    ['an empty file', 0],
    ['a byte', 1],
    ['a few pieces', 300_000],
    ['50 MB', 50 * MB],
  ])('%s comes back as it was, byte for byte', async (_, size) => {
    const data = randomBytes(size);
    await sandbox.files.write('in', data);
    const published = await sandbox.publish('in', `sizes/${size}`);
    expect(published).toEqual({ key: `sizes/${size}`, sizeBytes: size, sha256: sha256(data) });
    const staged = await sandbox.stage(published.key, 'deep/er/out', { sha256: published.sha256, mode: 0o640 });
    expect(staged).toEqual({ path: '/workspace/deep/er/out', sizeBytes: size, sha256: sha256(data) });
    expect((await sandbox.exec('cmp in deep/er/out')).exitCode).toBe(0);
    expect(await sandbox.files.stat('deep/er/out')).toMatchObject({ mode: 0o640, sizeBytes: size });
  });

  test('a key is made up when none is given, never the same', async () => {
    await sandbox.files.write('in', 'x');
    const [one, two] = await Promise.all([sandbox.publish('in'), sandbox.publish('in')]);
    expect(one.key).toMatch(/^files\/f_[0-9a-f]{16,}$/);
    expect(two.key).not.toBe(one.key);
    expect((await sandbox.stage(two.key, 'out')).sizeBytes).toBe(1);
  });

  test.each(['日本語/ファイル.txt', 'über uns/a b', 'a#b%20c?d&e=f+g*', '🙂', '..hidden/x..', 'ä'.repeat(120)])(
    'the key %s works',
    async (key) => {
      await sandbox.files.write('in', key);
      expect((await sandbox.publish('in', key)).key).toBe(key);
      await sandbox.stage(key, 'out');
      expect(await sandbox.files.readText('out')).toBe(key);
    },
  );

  test('publishing again replaces', async () => {
    await sandbox.files.write('in', 'old'.repeat(100_000));
    await sandbox.publish('in', 'again');
    await sandbox.files.write('in', 'new');
    await sandbox.publish('in', 'again');
    await sandbox.stage('again', 'out');
    expect(await sandbox.files.readText('out')).toBe('new');
  });

  test('a missing object is FILE_NOT_FOUND, and no file appears', async () => {
    const staging = sandbox.stage('no/such', 'never/out');
    await expect(staging).rejects.toMatchObject({ code: 'FILE_NOT_FOUND', details: { key: 'no/such' } });
    expect(await sandbox.files.exists('never/out')).toBe(false);
  });

  test.each(['', '/', '/a', 'a/', 'a//b', '.', '..', '../a', 'a/../../b', 'a\0b', 'a'.repeat(1025)])(
    'the key %j is refused both ways',
    async (key) => {
      await sandbox.files.write('in', 'x');
      await expect(sandbox.stage(key, 'out')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(sandbox.publish('in', key)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    },
  );

  test('a directory is refused with IS_A_DIRECTORY, a missing file with FILE_NOT_FOUND, and nothing is stored', async () => {
    await sandbox.files.mkdir('folder');
    await expect(sandbox.publish('folder', 'from/folder')).rejects.toMatchObject({ code: 'IS_A_DIRECTORY' });
    await expect(sandbox.publish('missing', 'from/missing')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(sandbox.stage('from/folder', 'out')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(sandbox.stage('from/missing', 'out')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
  });

  test('an object with another SHA-256 than was expected is PROTOCOL, and the old file stays', async () => {
    await sandbox.files.write('in', 'content');
    await sandbox.publish('in', 'summed');
    await sandbox.files.write('kept', 'old');
    const wrong = sha256('something else');
    for (const path of ['kept', 'never/out']) {
      await expect(sandbox.stage('summed', path, { sha256: wrong })).rejects.toMatchObject({
        code: 'PROTOCOL',
        details: { key: 'summed', expected: wrong, actual: sha256('content') },
      });
    }
    expect(await sandbox.files.readText('kept')).toBe('old');
    expect(await sandbox.files.exists('never/out')).toBe(false);
    await expect(sandbox.stage('summed', 'out', { sha256: 'abc' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('maxBytes is the most that passes, either way', async () => {
    await sandbox.files.write('in', Buffer.alloc(200_000, 1));
    await expect(sandbox.publish('in', 'most', { maxBytes: 199_999 })).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
    });
    await expect(sandbox.stage('most', 'out')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await sandbox.publish('in', 'most', { maxBytes: 200_000 });
    await expect(sandbox.stage('most', 'never/out', { maxBytes: 199_999 })).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      details: { maxBytes: 199_999, sizeBytes: 200_000 },
    });
    expect(await sandbox.files.exists('never/out')).toBe(false);
    expect((await sandbox.stage('most', 'out', { maxBytes: 200_000 })).sizeBytes).toBe(200_000);
  });

  test('overwrite: false keeps a file that is there', async () => {
    await sandbox.files.write('in', 'new');
    await sandbox.publish('in', 'kept');
    await sandbox.files.write('there', 'old');
    await expect(sandbox.stage('kept', 'there', { overwrite: false })).rejects.toMatchObject({ code: 'FILE_EXISTS' });
    expect(await sandbox.files.readText('there')).toBe('old');
  });

  test('an abort in the middle rejects with its own reason and leaves nothing', async () => {
    await sandbox.exec('head -c 104857600 /dev/zero > big');
    const reason = new Error('changed my mind');
    const publishing = new AbortController();
    const published = sandbox.publish('big', 'aborted', { signal: publishing.signal });
    setTimeout(() => publishing.abort(reason), 5);
    await expect(published).rejects.toBe(reason);
    await expect(sandbox.stage('aborted', 'out')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });

    await sandbox.publish('big', 'big');
    const staging = new AbortController();
    const staged = sandbox.stage('big', 'never/big', { signal: staging.signal });
    setTimeout(() => staging.abort(reason), 5);
    await expect(staged).rejects.toBe(reason);
    expect(await sandbox.files.exists('never/big')).toBe(false);
    await expect(sandbox.stage('big', 'out', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test('many at once do not disturb each other', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `many-${index}`);
    await Promise.all(names.map((name) => sandbox.files.write(name, name.repeat(40_000))));
    await Promise.all(names.map((name) => sandbox.publish(name, name)));
    await Promise.all(names.map((name) => sandbox.stage(name, `${name}.out`)));
    const compared = await sandbox.exec('for i in $(seq 0 11); do cmp many-$i many-$i.out || exit 1; done');
    expect(compared).toMatchObject({ exitCode: 0 });
  });
}

describeWithEngine('staging with memory', () => {
  contract(() => ({ type: 'memory' }));
});

describeWithEngine('staging with a folder', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-store-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  contract(() => ({ type: 'folder', path: folder }));

  test('what is stored is a plain file under the prefix, and nothing is left beside it', async () => {
    const manager = testManager({ store: { type: 'folder', path: folder, prefix: 'tenant/7' } });
    const sandbox = await manager.open({ image: IMAGES.alpine });
    await sandbox.exec('head -c 20971520 /dev/zero > big');
    expect((await sandbox.publish('big', 'big')).key).toBe('big');
    expect(readdirSync(path.join(folder, 'tenant/7'))).toEqual(['big']);
  });

  test('a folder that is not there is FILE_NOT_FOUND', async () => {
    const manager = testManager({ store: { type: 'folder', path: path.join(folder, 'missing') } });
    const sandbox = await manager.open({ image: IMAGES.alpine });
    await sandbox.files.write('in', 'x');
    await expect(sandbox.publish('in')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
  });
});

describeWithNats('staging with NATS', () => {
  const server = new NatsServer();
  beforeAll(() => server.start());
  afterAll(() => server.stop());
  contract(() => ({ type: 'nats', servers: server.url, bucket: 'contract', create: true, prefix: 'some/prefix' }));
});

describeWithEngine('staging with S3', () => {
  const server = new S3Server();
  beforeAll(() => server.start());
  afterAll(() => server.stop());
  contract(() => server.options);
});

describeWithEngine('a manager without a store', () => {
  test('says what to set', async () => {
    const sandbox = await testManager().open({ image: IMAGES.alpine });
    for (const call of [() => sandbox.stage('a', 'a'), () => sandbox.publish('a')]) {
      await expect(call()).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('set store'),
      });
    }
  });
});
