import type { Sandbox } from 'cofferdam';
import { S3Server } from '../s3-server';
import { describeWithEngine, IMAGES, testManager, until } from '../support';

const MB = 1024 * 1024;

describeWithEngine('staging with S3', () => {
  const server = new S3Server();
  let sandbox: Sandbox;

  beforeAll(async () => {
    await server.start();
    sandbox = await testManager({ store: server.options }).open({ image: IMAGES.alpine });
    await sandbox.exec('head -c 41943040 /dev/urandom > big');
    await sandbox.files.write('in', 'x');
  });
  afterEach(() => {
    server.onRequest = () => {};
  });
  afterAll(() => server.stop());

  test('what is large goes in parts, what is small in one request', async () => {
    server.begun = 0;
    await sandbox.publish('in', 'small');
    expect(server.begun).toBe(0);
    await sandbox.publish('big', 'large');
    expect(server.begun).toBe(1);
    expect(server.objects.get('large')?.length).toBe(40 * MB);
    expect(server.uploads.size).toBe(0);
  });

  test('an abort in the middle ends the upload, so that no part stays', async () => {
    const abort = new AbortController();
    server.onRequest = (_, url) => {
      if (url.searchParams.get('partNumber') === '3') abort.abort();
    };
    await expect(sandbox.publish('big', 'aborted', { signal: abort.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    await until(() => server.uploads.size === 0);
    expect(server.objects.has('aborted')).toBe(false);
  });

  test('an abort while the upload begins ends it too', async () => {
    const abort = new AbortController();
    server.begun = 0;
    server.onRequest = (_, url) => {
      if (url.searchParams.has('uploads')) abort.abort();
    };
    await expect(sandbox.publish('big', 'aborted', { signal: abort.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    await until(() => server.begun === 1 && server.uploads.size === 0);
  });

  test('a part that is refused fails the whole, and ends the upload', async () => {
    server.onRequest = (_, url) => {
      if (url.searchParams.get('partNumber') === '2') throw new Error('this disk is broken');
    };
    await expect(sandbox.publish('big', 'refused')).rejects.toMatchObject({ code: expect.any(String) });
    await until(() => server.uploads.size === 0);
    expect(server.objects.has('refused')).toBe(false);
  });

  test('refused credentials are PERMISSION_DENIED, and the message holds none of them', async () => {
    for (const wrong of [{ accessKeyId: 'AKIDWRONG99999' }, { secretAccessKey: 'not-the-secret-at-all' }]) {
      const options = { ...server.options, ...wrong };
      const other = await testManager({ store: options }).open({ image: IMAGES.alpine });
      await other.files.write('in', 'x');
      for (const call of [() => other.publish('in', 'denied'), () => other.stage('large', 'out')]) {
        const error = await call().catch((reason) => reason);
        expect(error).toMatchObject({ code: 'PERMISSION_DENIED', details: { store: 's3' } });
        const said = `${error.stack} ${JSON.stringify(error.details)}`;
        expect(said).not.toContain(options.accessKeyId);
        expect(said).not.toContain(options.secretAccessKey);
      }
    }
  });

  test('credentials come from the environment, whole or not at all', async () => {
    const { accessKeyId, secretAccessKey, ...rest } = server.options;
    const saved = { ...process.env };
    try {
      delete process.env.AWS_ACCESS_KEY_ID;
      delete process.env.AWS_SECRET_ACCESS_KEY;
      const missing = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('AWS_ACCESS_KEY_ID') };
      expect(() => testManager({ store: rest })).toThrow(expect.objectContaining(missing));
      process.env.AWS_ACCESS_KEY_ID = accessKeyId;
      process.env.AWS_SECRET_ACCESS_KEY = secretAccessKey;
      expect(() => testManager({ store: { ...rest, accessKeyId } })).toThrow(expect.objectContaining(missing));
      const other = await testManager({ store: rest }).open({ image: IMAGES.alpine });
      await other.files.write('in', 'from the environment');
      await other.publish('in', 'environment');
      expect(server.objects.get('environment')?.toString()).toBe('from the environment');
    } finally {
      process.env = saved;
    }
  });

  test('a missing bucket is FILE_NOT_FOUND, an unreachable endpoint TIMED_OUT', async () => {
    const nope = await testManager({ store: { ...server.options, bucket: 'nope' } }).open({ image: IMAGES.alpine });
    await nope.files.write('in', 'x');
    await expect(nope.publish('in')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    const gone = new S3Server();
    await gone.start();
    const { options } = gone;
    await gone.stop();
    const lost = await testManager({ store: options }).open({ image: IMAGES.alpine });
    await expect(lost.stage('a', 'never')).rejects.toMatchObject({ code: 'TIMED_OUT', details: { store: 's3' } });
    expect(await lost.files.exists('never')).toBe(false);
  });
});
