import type { Sandbox } from 'cofferdam';
import { describeWithEngine, IMAGES, testManager, testOnDocker } from '../support';
import { failure, sturdySandbox } from './failure';

/** Every sandbox has a small file system in memory there: 64 MiB on Docker. */
const SMALL = '/dev/shm';
const SMALL_BYTES = 64 << 20;

async function names(sandbox: Sandbox, folder: string): Promise<string[]> {
  const { stdout } = await sandbox.exec(['ls', '-A', folder]);
  return stdout.split('\n').filter(Boolean);
}

describeWithEngine('a full disk', () => {
  const sandbox = sturdySandbox(testManager(), { image: IMAGES.alpine });

  beforeEach(async () => {
    await sandbox().exec(`rm -rf ${SMALL}/* /workspace/*`);
  });

  test('rejects a file that does not fit, and leaves nothing of it', async () => {
    const error = await failure(sandbox().files.write(`${SMALL}/big`, Buffer.alloc(SMALL_BYTES + 1)));
    expect(error.code).toBe('LIMIT_EXCEEDED');
    expect(await names(sandbox(), SMALL)).toEqual([]);
  });

  test('rejects a stream that does not fit, and leaves nothing of it', async () => {
    const endless = (async function* () {
      for (;;) yield Buffer.alloc(1 << 20);
    })();
    expect((await failure(sandbox().files.write(`${SMALL}/big`, endless))).code).toBe('LIMIT_EXCEEDED');
    expect(await names(sandbox(), SMALL)).toEqual([]);
  });

  test('keeps the file that was to be replaced', async () => {
    await sandbox().files.write(`${SMALL}/kept`, 'old');
    const error = await failure(sandbox().files.write(`${SMALL}/kept`, Buffer.alloc(SMALL_BYTES)));
    expect(error.code).toBe('LIMIT_EXCEEDED');
    expect(await sandbox().files.readText(`${SMALL}/kept`)).toBe('old');
    expect(await names(sandbox(), SMALL)).toEqual(['kept']);
  });

  test('rejects even a small file when nothing is left, and takes it when there is room again', async () => {
    await sandbox().exec(`head -c ${2 * SMALL_BYTES} /dev/zero > ${SMALL}/filler`);
    expect((await failure(sandbox().files.write(`${SMALL}/small`, 'hello'))).code).toBe('LIMIT_EXCEEDED');
    expect(await names(sandbox(), SMALL)).toEqual(['filler']);
    await sandbox().files.remove(`${SMALL}/filler`);
    await sandbox().files.write(`${SMALL}/small`, 'hello');
    expect(await sandbox().files.readText(`${SMALL}/small`)).toBe('hello');
  });

  test('rejects a copy that does not fit, and leaves nothing of it', async () => {
    await sandbox().files.write('big', Buffer.alloc(SMALL_BYTES + 1));
    expect((await failure(sandbox().files.copy('big', `${SMALL}/big`))).code).toBe('LIMIT_EXCEEDED');
    expect(await names(sandbox(), SMALL)).toEqual([]);
  });

  test('rejects a move that does not fit: the file stays where it was, and nowhere else', async () => {
    await sandbox().files.write('big', Buffer.alloc(SMALL_BYTES + 1));
    expect((await failure(sandbox().files.move('big', `${SMALL}/big`))).code).toBe('LIMIT_EXCEEDED');
    expect(await names(sandbox(), SMALL)).toEqual([]);
    expect(await sandbox().files.stat('big')).toMatchObject({ sizeBytes: SMALL_BYTES + 1 });
  });
});

describeWithEngine('a workdir in memory that is as small as the memory', () => {
  const manager = testManager();
  const options = { image: IMAGES.alpine, readOnlyRoot: true, limits: { memoryMb: 64 } } as const;
  const sandbox = sturdySandbox(manager, options);

  test('rejects a file that is larger than the memory, and the sandbox lives', async () => {
    const error = await failure(sandbox().files.write('big', Buffer.alloc(100 << 20)));
    expect(error.code).toBe('LIMIT_EXCEEDED');
    expect(await names(sandbox(), '/workspace')).toEqual([]);
  });

  test('does not lose the sandbox to a command that fills it', async () => {
    const result = await sandbox().exec('head -c 200000000 /dev/zero > big; echo end');
    expect(result.stdout).toBe('end\n');
    expect((await manager.open(options)).created).toBe(false);
  });
});

describeWithEngine('a read-only root', () => {
  const sandbox = sturdySandbox(testManager(), { image: IMAGES.alpine, readOnlyRoot: true });

  beforeEach(async () => {
    await sandbox().exec('rm -rf /tmp/*');
  });

  test.each<[string, (sandbox: Sandbox) => Promise<unknown>]>([
    ['a new file', ({ files }) => files.write('/etc/new', 'x')],
    ['a new file in a new folder', ({ files }) => files.write('/new/folder/file', 'x')],
    ['a file that is there', ({ files }) => files.write('/etc/passwd', 'x')],
    ['a new folder', ({ files }) => files.mkdir('/new')],
    ['a removal', ({ files }) => files.remove('/etc/passwd')],
    ['the removal of a tree', ({ files }) => files.remove('/etc', { recursive: true })],
    ['a move', ({ files }) => files.move('/etc/passwd', '/etc/moved')],
    ['a move out of it', ({ files }) => files.move('/etc/passwd', '/tmp/moved')],
    ['a copy', ({ files }) => files.copy('/etc/passwd', '/etc/copied')],
    ['the guest itself', ({ files }) => files.write('/.cofferdam/guest', 'x')],
  ])('rejects %s with PERMISSION_DENIED', async (_, change) => {
    expect((await failure(change(sandbox()))).code).toBe('PERMISSION_DENIED');
    expect(await sandbox().files.readText('/etc/passwd')).toMatch(/^root:/);
    expect(await names(sandbox(), '/tmp')).toEqual([]);
  });

  test('takes files in the workdir and in /tmp', async () => {
    await sandbox().files.writeMany({ 'in/workdir': 'a', '/tmp/b': 'b' });
    const { stdout } = await sandbox().exec('cat in/workdir /tmp/b; rm -r in /tmp/b');
    expect(stdout).toBe('ab');
  });
});

describeWithEngine('the guest in a sandbox whose root may be written', () => {
  const sandbox = sturdySandbox(testManager(), { image: IMAGES.alpine });

  test('cannot be written to, not even by root', async () => {
    expect(await sandbox().exec('echo x > /proc/1/exe')).toMatchObject({ ok: false });
    expect((await sandbox().exec('echo lives')).stdout).toBe('lives\n');
  });

  testOnDocker('cannot be replaced where Docker mounts it, not even by root', async () => {
    expect((await failure(sandbox().files.write('/.cofferdam/guest', 'x'))).code).toBe('PERMISSION_DENIED');
    expect((await failure(sandbox().files.remove('/.cofferdam', { recursive: true }))).code).toBe('PERMISSION_DENIED');
    expect(await sandbox().exec('echo x > /.cofferdam/guest')).toMatchObject({ ok: false });
  });
});
