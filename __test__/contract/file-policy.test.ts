import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SandboxManager } from 'cofferdam';
import { describeWithEngine, IMAGES, testManager } from '../support';

describeWithEngine('a policy on files', () => {
  const home = mkdtempSync(path.join(tmpdir(), 'cofferdam-policy-'));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  const policy = { blockedPaths: ['/etc/passwd', '/root', '**/.ssh'], maxFileBytes: 1000, maxFiles: 3 };
  const manager = testManager({ policy, defaults: { image: IMAGES.debian } });
  const blocked = { code: 'PATH_BLOCKED' };
  const exceeded = { code: 'LIMIT_EXCEEDED' };

  test('blocks paths for every file operation, however they are written', async () => {
    const { files } = await manager.open();
    for (const name of ['/etc/passwd', '/etc/../etc//passwd', '../root', '/root/x/y', 'home/.ssh/id_rsa']) {
      await expect(files.read(name)).rejects.toMatchObject(blocked);
      await expect(files.write(name, 'x')).rejects.toMatchObject(blocked);
      await expect(files.stat(name)).rejects.toMatchObject(blocked);
      await expect(files.remove(name)).rejects.toMatchObject(blocked);
      await expect(files.mkdir(name)).rejects.toMatchObject(blocked);
      await expect(files.copy(name, 'x')).rejects.toMatchObject(blocked);
      await expect(files.move('x', name)).rejects.toMatchObject(blocked);
      await expect(files.stream(name).getReader().read()).rejects.toMatchObject(blocked);
      await expect(files.upload(home, name)).rejects.toMatchObject(blocked);
      await expect(files.download(name, path.join(home, 'x'))).rejects.toMatchObject(blocked);
    }
    await expect(files.list('/root')).rejects.toMatchObject(blocked);
    expect(await files.exists('/etc/hostname')).toBe(true);
  });

  test('blocks them by whatever link they are reached, and with the folder that they are in', async () => {
    const sandbox = await manager.open();
    const { files } = sandbox;
    await sandbox.exec('ln -s /etc/passwd innocent; ln -s /root home; ln -s /etc config');
    for (const name of ['innocent', 'home/file', 'config/passwd']) {
      await expect(files.read(name)).rejects.toMatchObject(blocked);
      await expect(files.write(name, 'x')).rejects.toMatchObject(blocked);
    }
    await expect(files.download('/etc', path.join(home, 'etc'))).rejects.toMatchObject({
      code: 'PATH_BLOCKED',
      message: expect.stringContaining('/etc/passwd'),
    });
    await expect(files.remove('/etc', { recursive: true })).rejects.toMatchObject(blocked);
    await expect(files.copy('/etc', 'copy')).rejects.toMatchObject(blocked);
  });

  test('bounds the size of files, whole, streamed and carried', async () => {
    const { files } = await manager.open();
    await files.write('fits', 'x'.repeat(1000));
    await expect(files.write('long', 'x'.repeat(1001))).rejects.toMatchObject(exceeded);
    const pieces = async function* () {
      for (;;) yield new Uint8Array(600);
    };
    await expect(files.write('long', pieces())).rejects.toMatchObject(exceeded);
    writeFileSync(path.join(home, 'long'), 'x'.repeat(1001));
    await expect(files.upload(path.join(home, 'long'))).rejects.toMatchObject(exceeded);
    const sandbox = await manager.open();
    await sandbox.exec('mkdir out; head -c 1001 /dev/zero > out/long');
    await expect(files.download('out', path.join(home, 'out'))).rejects.toMatchObject(exceeded);
    expect(await files.exists('long')).toBe(false);
  });

  test('bounds how many files one call carries', async () => {
    const { files } = await manager.open();
    const many = path.join(home, 'many');
    mkdirSync(many);
    for (let index = 0; index < 4; index++) writeFileSync(path.join(many, `${index}`), 'x');
    await expect(files.upload(many)).rejects.toMatchObject(exceeded);
    expect(await files.exists('many')).toBe(false);
    rmSync(path.join(many, '3'));
    await files.upload(many);
    const inits = Object.fromEntries(Array.from({ length: 4 }, (_, index) => [`f${index}`, 'x']));
    await expect(manager.open({ session: 'isolated', files: inits })).rejects.toMatchObject(exceeded);
  });

  test('a policy that cannot be meant is refused at open()', async () => {
    for (const entry of ['etc/passwd', '/a/[']) {
      const bad = testManager({ policy: { blockedPaths: [entry] }, defaults: { image: IMAGES.debian } });
      await expect(bad.open()).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('blockedPaths'),
      });
    }
    expect(() => new SandboxManager({ policy: { blockedPaths: '/etc' as never } })).toThrow(/blockedPaths/);
    expect(() => new SandboxManager({ policy: { maxFileBytes: -1 } })).toThrow(/maxFileBytes/);
  });
});
