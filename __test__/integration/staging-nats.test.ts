import { createHash, randomBytes } from 'node:crypto';
import type { Sandbox, SandboxManagerOptions } from 'cofferdam';
import { connect, type NatsConnection, StringCodec } from 'nats';
import { describeWithNats, NatsServer } from '../nats-server';
import { IMAGES, program, testManager, until } from '../support';

const MB = 1024 * 1024;

type Store = Extract<NonNullable<SandboxManagerOptions['store']>, { type: 'nats' }>;

/** Looks at a server with the official client. */
class Witness {
  readonly #connection: NatsConnection;
  readonly #bucket: string;

  constructor(connection: NatsConnection, bucket: string) {
    this.#connection = connection;
    this.#bucket = bucket;
  }

  static async of(server: NatsServer, bucket: string): Promise<Witness> {
    return new Witness(await connect({ servers: server.url, reconnect: false }), bucket);
  }

  /** Of all objects, and of what never became one. */
  async chunks(): Promise<number> {
    const jsm = await this.#connection.jetstreamManager({ timeout: 30_000 });
    const { state } = await jsm.streams.info(`OBJ_${this.#bucket}`, { subjects_filter: `$O.${this.#bucket}.C.>` });
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  }

  async isStored(key: string): Promise<boolean> {
    return (await (await this.store()).info(key)) !== null;
  }

  store() {
    return this.#connection.jetstream().views.os(this.#bucket);
  }

  /** Replaces what is stored of an object by other bytes. */
  async corrupt(key: string, bytes: Uint8Array): Promise<void> {
    const info = await (await this.store()).info(key);
    const subject = `$O.${this.#bucket}.C.${info?.nuid}`;
    await (await this.#connection.jetstreamManager({ timeout: 30_000 })).streams.purge(`OBJ_${this.#bucket}`, {
      filter: subject,
    });
    if (bytes.length > 0) await this.#connection.jetstream().publish(subject, bytes);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

describeWithNats('staging with NATS', () => {
  const server = new NatsServer();
  const bucket = 'files';
  const store = (): Store => ({ type: 'nats', servers: server.url, bucket, create: true });
  let sandbox: Sandbox;
  let witness: Witness;

  beforeAll(async () => {
    await server.start();
    sandbox = await testManager({ store: store() }).open({ image: IMAGES.alpine });
    await sandbox.files.write('in', 'x');
    await sandbox.publish('in', 'first');
    witness = await Witness.of(server, bucket);
  });
  afterAll(async () => {
    await witness.close();
    await server.stop();
  });

  test('what is published, the official client reads; what that puts can be staged', async () => {
    const data = randomBytes(700_000);
    await sandbox.files.write('ours', data);
    await sandbox.publish('ours', 'from us/a b.bin');
    const objects = await witness.store();
    const got = await objects.getBlob('from us/a b.bin');
    expect(got && Buffer.from(got).equals(data)).toBe(true);
    await objects.putBlob({ name: 'theirs', options: { max_chunk_size: 10_000 } }, data);
    const sha256 = createHash('sha256').update(data).digest('hex');
    expect(await sandbox.stage('theirs', 'theirs', { sha256 })).toMatchObject({ sizeBytes: data.length, sha256 });
    await objects.delete('theirs');
    await expect(sandbox.stage('theirs', 'gone')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
  });

  test('replacing an object leaves no chunk of the old one', async () => {
    const before = await witness.chunks();
    await sandbox.exec('head -c 3145728 /dev/zero > three');
    await sandbox.publish('three', 'replaced');
    await sandbox.publish('in', 'replaced');
    expect(await witness.chunks()).toBe(before + 1);
  });

  test.each([
    ['other bytes', 'CONTENT'],
    ['fewer bytes', 'cont'],
    ['more bytes', 'content and more'],
    ['no bytes', ''],
  ])('an object of which %s are stored is PROTOCOL, and no file appears', async (_, bytes) => {
    await sandbox.files.write('in', 'content');
    await sandbox.publish('in', 'corrupt');
    await witness.corrupt('corrupt', StringCodec().encode(bytes));
    await expect(sandbox.stage('corrupt', 'never/out')).rejects.toMatchObject({
      code: 'PROTOCOL',
      details: { key: 'corrupt' },
    });
    expect(await sandbox.files.exists('never/out')).toBe(false);
  });

  test('an abort in the middle removes what was stored until then', async () => {
    const before = await witness.chunks();
    await sandbox.exec('head -c 209715200 /dev/zero > big');
    const abort = new AbortController();
    const publishing = sandbox.publish('big', 'aborted', { signal: abort.signal });
    await until(async () => (await witness.chunks()) > before + 20);
    abort.abort();
    await expect(publishing).rejects.toMatchObject({ name: 'AbortError' });
    await until(async () => (await witness.chunks()) === before);
    expect(await witness.isStored('aborted')).toBe(false);
  });

  test('a missing bucket is FILE_NOT_FOUND that says how to make it', async () => {
    const other = await testManager({ store: { ...store(), bucket: 'nope', create: false } }).open({
      image: IMAGES.alpine,
    });
    await other.files.write('in', 'x');
    await expect(other.publish('in')).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
      message: expect.stringContaining('create: true'),
    });
    const bad = await testManager({ store: { ...store(), bucket: 'no good' } }).open({ image: IMAGES.alpine });
    await expect(bad.stage('a', 'a')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('a bucket that is full is LIMIT_EXCEEDED, and keeps nothing of what did not fit', async () => {
    const connection = await connect({ servers: server.url });
    await connection.jetstream().views.os('small', { max_bytes: 2 * MB });
    const small = new Witness(connection, 'small');
    const other = await testManager({ store: { ...store(), bucket: 'small' } }).open({ image: IMAGES.alpine });
    await other.exec('head -c 5242880 /dev/zero > five');
    await expect(other.publish('five', 'five')).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
    await until(async () => (await small.chunks()) === 0);
    expect(await small.isStored('five')).toBe(false);
    await small.close();
  });

  test('a program ends by itself after close()', async () => {
    const { code, output } = await program(`
      const manager = new SandboxManager({ store: ${JSON.stringify(store())} });
      const sandbox = await manager.open({ image: ${JSON.stringify(IMAGES.alpine)} });
      await sandbox.files.write('in', 'x');
      console.log((await sandbox.publish('in')).sizeBytes);
      await manager.close();
      await sandbox.stage('first', 'out').catch(({ code }) => console.log(code));
    `).ended;
    expect({ code, output }).toEqual({ code: 0, output: '1\nSANDBOX_CLOSED\n' });
  });

  test('close() in the middle of a transfer rejects it, and what it stored goes', async () => {
    const before = await witness.chunks();
    const manager = testManager({ store: store() });
    const other = await manager.open({ image: IMAGES.alpine });
    await other.exec('head -c 209715200 /dev/zero > big');
    const publishing = other.publish('big', 'closed');
    const outcome = publishing.then(
      () => 'published',
      () => 'rejected',
    );
    await until(async () => (await witness.chunks()) > before + 20);
    await manager.close();
    expect(await outcome).toBe('rejected');
    expect(await witness.chunks()).toBe(before);
  });

  test('200 MB there and back cost the program less than 64 MiB of memory', async () => {
    const { output } = await program(`
      const { readFileSync, writeFileSync } = require('node:fs');
      const peak = () => Number(/VmHWM:\\s+(\\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) * 1024;
      const manager = new SandboxManager({ store: ${JSON.stringify(store())} });
      const sandbox = await manager.open({ image: ${JSON.stringify(IMAGES.alpine)} });
      await sandbox.exec('head -c 209715200 /dev/urandom > big');
      await sandbox.files.write('small', 'x');
      await sandbox.stage((await sandbox.publish('small')).key, 'warm');
      writeFileSync('/proc/self/clear_refs', '5');
      const start = process.memoryUsage.rss();
      const { key, sha256 } = await sandbox.publish('big');
      const staged = await sandbox.stage(key, 'back', { sha256 });
      console.log(JSON.stringify({ sizeBytes: staged.sizeBytes, growth: peak() - start }));
      await manager.close();
    `).ended;
    const { sizeBytes, growth } = JSON.parse(output);
    expect(sizeBytes).toBe(200 * MB);
    expect(growth).toBeLessThan(64 * MB);
  });
});

describeWithNats('staging with a NATS server that goes away', () => {
  const bucket = 'mortal';
  /** They share a disk, and each writes hundreds of megabytes. */
  const GUARD_MS = 180_000;
  const storeOn = (server: NatsServer): Store => ({ type: 'nats', servers: server.url, bucket, create: true });

  /**
   * A server with an object on it, of a test's own: Debian's 2.9.10, killed soon after a purge, has lost its first block of
   * messages when it is back (seen with the official client alone), so that what outlives one kill need not outlive the
   * next.
   */
  async function mortal() {
    const server = new NatsServer();
    await server.start();
    const sandbox = await testManager({ store: storeOn(server) }).open({ image: IMAGES.alpine });
    await sandbox.exec('head -c 314572800 /dev/zero > big');
    await sandbox.files.write('in', 'x');
    await sandbox.publish('big', 'big');
    return { server, sandbox, [Symbol.asyncDispose]: () => server.stop() };
  }

  // Most of their time is the store's patience with a server that does not answer.
  test.concurrent(
    'in the middle of publishing: it rejects, and nothing of it stays once the server is back',
    async () => {
      await using ground = await mortal();
      const { server, sandbox } = ground;
      const before = await Witness.of(server, bucket);
      const count = await before.chunks();
      const publishing = expect(sandbox.publish('big', 'broken')).rejects.toMatchObject({
        code: 'TIMED_OUT',
        details: { store: 'nats', servers: [server.url] },
      });
      await until(async () => (await before.chunks()) > count + 20);
      await server.kill();
      await publishing;
      await server.start();
      await expect(sandbox.stage('broken', 'out')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
      const after = await Witness.of(server, bucket);
      await until(async () => (await after.chunks()) === count);
      await after.close();
    },
    GUARD_MS,
  );

  test.concurrent(
    'in the middle of staging: it rejects, and no file appears',
    async () => {
      await using ground = await mortal();
      const { server, sandbox } = ground;
      await sandbox.files.mkdir('landing');
      const staging = expect(sandbox.stage('big', 'landing/big')).rejects.toMatchObject({ code: 'TIMED_OUT' });
      await until(async () => (await sandbox.exec('ls -A landing')).stdout !== '');
      await server.kill();
      await staging;
      await until(async () => (await sandbox.exec('ls -A landing')).stdout === '');
      await server.start();
      expect((await sandbox.stage('big', 'landing/big')).sizeBytes).toBe(300 * MB);
    },
    GUARD_MS,
  );

  test.concurrent(
    'before: it rejects with TIMED_OUT and the last error, and works when the server is back',
    async () => {
      await using ground = await mortal();
      const { server, sandbox } = ground;
      await server.kill();
      const unreachable = { code: 'TIMED_OUT', details: { store: 'nats', servers: [server.url] } };
      // The first call may be made before the client has seen that its connection is broken.
      await expect(sandbox.publish('in')).rejects.toMatchObject(unreachable);
      const message = expect.stringMatching(/refused/i);
      await expect(sandbox.stage('big', 'never')).rejects.toMatchObject({ ...unreachable, message });
      expect(await sandbox.files.exists('never')).toBe(false);
      await server.start();
      expect((await sandbox.publish('in')).sizeBytes).toBe(1);
    },
    GUARD_MS,
  );

  test.concurrent(
    'for good: close() still ends, and so does the program',
    async () => {
      await using ground = await mortal();
      const { server } = ground;
      const running = program(`
      const manager = new SandboxManager({ store: ${JSON.stringify(storeOn(server))} });
      const sandbox = await manager.open({ image: ${JSON.stringify(IMAGES.alpine)} });
      await sandbox.files.write('in', 'x');
      await sandbox.publish('in');
      const awake = setInterval(() => {}, 1000);
      const told = new Promise((resolve) => process.once('SIGUSR2', resolve));
      console.log('ready');
      await told;
      clearInterval(awake);
      await manager.close();
      console.log('closed');
    `);
      await running.line();
      await server.kill();
      running.child.kill('SIGUSR2');
      expect(await running.ended).toMatchObject({ code: 0, output: 'ready\nclosed\n' });
    },
    GUARD_MS,
  );
});
