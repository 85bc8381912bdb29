import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type SandboxError, SandboxManager } from 'cofferdam';
import { describeWithNats, NatsServer } from '../nats-server';
import { IMAGES, record, testManager } from '../support';

const PASSWORD = 'correct-horse-battery';

describeWithNats('the credentials of a store', () => {
  const server = new NatsServer('--user', 'anna', '--pass', PASSWORD);
  const store = { type: 'nats', bucket: 'secret', create: true, user: 'anna', password: PASSWORD } as const;
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  test('are nowhere in the sandbox, nor in any event', async () => {
    const manager = testManager({ store: { ...store, servers: server.url } });
    const events = record(manager);
    const sandbox = await manager.open({ image: IMAGES.alpine });
    await sandbox.files.write('in', 'x');
    await sandbox.stage((await sandbox.publish('in')).key, 'out');
    const port = new URL(server.url).port;
    const seen = await sandbox.exec(
      'cat /proc/*/environ /proc/*/cmdline | tr "\\0" "\\n"; env; cat /proc/net/tcp; cat /workspace/* /tmp/* /etc/hosts',
    );
    expect(seen.stdout).toContain('PATH=');
    for (const secret of [PASSWORD, `127.0.0.1:${port}`, 'nats://']) {
      expect(seen.stdout).not.toContain(secret);
      expect(JSON.stringify(events)).not.toContain(secret);
    }
  });

  test('that are refused are PERMISSION_DENIED at once, without being told', async () => {
    const wrong = 'Tr0ub4dor-and-3';
    const { host } = new URL(server.url);
    const attempts = [
      { ...store, servers: server.url, password: wrong },
      { type: 'nats', bucket: 'secret', servers: server.url, token: wrong } as const,
      { type: 'nats', bucket: 'secret', servers: `nats://anna:${wrong}@${host}` } as const,
    ];
    for (const attempt of attempts) {
      const sandbox = await testManager({ store: attempt }).open({ image: IMAGES.alpine });
      const error: SandboxError = await sandbox.stage('a', 'a').catch((reason) => reason);
      expect(error).toMatchObject({ code: 'PERMISSION_DENIED', details: { store: 'nats', servers: [server.url] } });
      expect(`${error.stack} ${JSON.stringify(error.details)}`).not.toContain(wrong);
    }
  });

  test('in the address of a server that is down are not told either', async () => {
    const sandbox = await testManager({
      store: { type: 'nats', bucket: 'secret', servers: `nats://anna:${PASSWORD}@127.0.0.1:9` },
    }).open({ image: IMAGES.alpine });
    const error: SandboxError = await sandbox.stage('a', 'a').catch((reason) => reason);
    expect(error).toMatchObject({ code: 'TIMED_OUT', details: { servers: ['nats://127.0.0.1:9'] } });
    expect(`${error.stack} ${JSON.stringify(error.details)}`).not.toContain(PASSWORD);
  });

  test('file that is missing, or holds none, is told by its name only', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-creds-'));
    const file = path.join(folder, 'a.creds');
    writeFileSync(file, `not a credential ${PASSWORD}`);
    for (const credentialsFile of [file, path.join(folder, 'missing.creds')]) {
      const options = { type: 'nats', bucket: 'secret', servers: server.url, credentialsFile } as const;
      const sandbox = await testManager({ store: options }).open({ image: IMAGES.alpine });
      const error: SandboxError = await sandbox.stage('a', 'a').catch((reason) => reason);
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(error.message).not.toContain(PASSWORD);
    }
    rmSync(folder, { recursive: true });
  });

  test('of a wrong shape are refused without showing them', () => {
    const shapes = [
      { ...store, servers: [] },
      { ...store, servers: server.url, password: undefined },
      { ...store, servers: server.url, password: [PASSWORD] },
      { type: 'ftp', password: PASSWORD },
    ];
    for (const shape of shapes) {
      let error: SandboxError | undefined;
      try {
        new SandboxManager({ store: shape as never });
      } catch (reason) {
        error = reason as SandboxError;
      }
      expect(error).toMatchObject({ code: 'INVALID_ARGUMENT' });
      expect(error?.message).not.toContain(PASSWORD);
    }
  });
});
