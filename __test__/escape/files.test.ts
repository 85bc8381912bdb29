import { chmodSync, copyFileSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Den } from './den';
import { everyUser, expectShut } from './shut';
import { describeWorlds } from './worlds';

/** Of every machine, and of none of its sandboxes. */
const FOLDERS = [
  '/root',
  '/home',
  '/etc',
  '/opt',
  '/srv',
  '/var/lib',
  '/var/tmp',
  '/tmp',
  '/run',
  '/dev/shm',
  '/mnt',
  '/',
];

describeWorlds('files of the host', (world) => {
  const den = new Den(world);
  beforeAll(() => den.start());
  afterAll(() => den.stop());
  const { witness } = den;

  test.each([
    ['by their path', ['read', witness.file]],
    ['by ".." from where one is', ['climb', witness.file]],
    ['through a symbolic link', ['symlink', witness.file]],
    ['through a hard link', ['hardlink', witness.file]],
    ['through what processes have as root, as folder, open or mapped', ['proc-links', witness.file, witness.reversed]],
  ])('cannot be read %s', async (_, words) => {
    await expectShut(den, { words });
  });

  test('cannot be read by leaving a root within the root', async () => {
    await expectShut(den, { words: ['double-chroot', witness.file], by: 'root' });
  });

  test('cannot be opened by handles', async () => {
    await expectShut(den, { words: ['handle', '.'] });
    const told = await den.outside(['handle', witness.file]);
    const { kind, hex } = (told as { got: { kind: number; hex: string } }).got;
    await expectShut(den, { words: ['open-handle', String(kind), hex], by: 'root' });
  });

  test('are not among the descriptors that come with a command', async () => {
    // The program has the secret open, and its terminal.
    const outside = await den.outside(['descriptors']);
    expect(outside).toHaveProperty('got');
    for (const [, answer] of await everyUser(den, ['descriptors'])) expect(answer).toEqual({ got: [] });
  });

  test('cannot be read in any folder that people and programs keep secrets in', async () => {
    const planted = FOLDERS.flatMap((folder) => witness.plant(folder) ?? []);
    let readable = 0;
    for (const file of planted) {
      const words = ['read', file];
      // Some are for root's eyes only.
      const answer = await den.outside(words);
      readable += 'got' in answer ? 1 : 0;
      await expectShut(den, { words, outside: 'got' in answer ? words : ['read', witness.file] });
    }
    expect(readable).toBeGreaterThan(2);
  });

  test('that only root may read cannot be read where the machine’s programs are seen', async () => {
    const planted = ['/usr/share', '/usr/local/share', '/usr/lib'].flatMap(
      (folder) => witness.plant(folder, 0o600) ?? [],
    );
    for (const file of [...planted, '/etc/shadow', '/etc/gshadow'].filter((name) => existsSync(name))) {
      const outside = await den.outside(['read', file]);
      if (den.isRoot) expect(outside).toEqual({ got: expect.any(String) });
      for (const [boxUser, answer] of await everyUser(den, ['read', file])) {
        // An image may have a file of that name, with another content.
        expect({ file, boxUser, answer }).not.toEqual({ file, boxUser, answer: { got: readFileSync(file, 'utf8') } });
      }
    }
  });

  test('are not changed by what is written to the same paths', async () => {
    const shared = witness.plant('/usr/share');
    if (shared) chmodSync(shared, 0o666);
    const files = [
      ...(shared ? [shared] : []),
      '/etc/passwd',
      '/etc/ld.so.preload',
      '/usr/bin/env',
      '/usr/local/bin/node',
    ];
    const look = () => files.map((file) => (existsSync(file) ? readFileSync(file).toString('base64') : null));
    const before = look();
    for (const file of [...files, witness.file]) await everyUser(den, ['write', file]);
    expect(look()).toEqual(before);
    expect(witness.isUntouched).toBe(true);
  });

  test('that PID 1 is executed from cannot be written to', async () => {
    const copy = path.join(witness.home, 'program');
    copyFileSync(den.probe, copy);
    chmodSync(copy, 0o777);
    const ways = ['write', 'append', 'write through a descriptor', 'truncate'];
    expect(await den.outside(['change-program', copy])).toEqual({ got: ways });
    for (const [boxUser, answer] of await everyUser(den, ['change-program', '/proc/1/exe'])) {
      expect({ boxUser, answer }).toEqual({ boxUser, answer: { got: [] } });
    }
    // Another sandbox still gets the same program.
    const sandbox = await den.open();
    expect(await den.inside(['hostname'], 'root', sandbox)).toHaveProperty('got');
    await den.ask('close', sandbox);
  });
});
