import { classes, describeWithEngine, IMAGES, testManager } from '../support';

describeWithEngine.each(classes('debian', 'alpine', 'empty'))('files on the %s class', (name) => {
  const manager = testManager();
  const open = async () => (await manager.open({ image: IMAGES[name] })).files;

  test('writes with parents and reads back, text and bytes', async () => {
    const files = await open();
    expect(await files.write('a/b/c.txt', 'h€llo')).toEqual({ path: '/workspace/a/b/c.txt', sizeBytes: 7 });
    expect(await files.readText('a/b/c.txt')).toBe('h€llo');
    const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => (index * 7) % 256);
    await files.write('/tmp/data.bin', bytes);
    const whole = await files.read('/tmp/data.bin', { maxBytes: 1_000_000 });
    expect(Buffer.compare(whole.bytes, bytes)).toBe(0);
    expect(whole).toMatchObject({ truncated: false, sizeBytes: 300_000 });
  });

  test('reads a part, and says when there is more', async () => {
    const files = await open();
    await files.write('digits', '0123456789');
    const part = await files.read('digits', { offset: 2, maxBytes: 3 });
    expect([part.text(), part.truncated, part.sizeBytes]).toEqual(['234', true, 10]);
    const past = await files.read('digits', { offset: 100 });
    expect([past.text(), past.truncated, past.sizeBytes]).toEqual(['', false, 10]);
    await expect(files.readText('digits', { maxBytes: 9 })).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
    expect(await files.readText('digits', { maxBytes: 10 })).toBe('0123456789');
  });

  test('an empty file is a file', async () => {
    const files = await open();
    expect(await files.write('empty', '')).toMatchObject({ sizeBytes: 0 });
    expect(await files.readText('empty')).toBe('');
    expect(await files.stat('empty')).toMatchObject({ type: 'file', sizeBytes: 0, name: 'empty' });
  });

  test('replaces a file whole and keeps its mode; refuses with overwrite: false', async () => {
    const files = await open();
    await files.write('run.sh', 'one', { mode: 0o755 });
    await files.write('run.sh', 'two');
    expect(await files.stat('run.sh')).toMatchObject({ mode: 0o755, sizeBytes: 3 });
    await expect(files.write('run.sh', 'three', { overwrite: false })).rejects.toMatchObject({ code: 'FILE_EXISTS' });
    expect(await files.readText('run.sh')).toBe('two');
    await expect(files.write('/tmp', 'x')).rejects.toMatchObject({ code: 'IS_A_DIRECTORY' });
  });

  test('writes from a stream and reads as a stream', async () => {
    const files = await open();
    const piece = Buffer.alloc(100_000, 'x');
    async function* pieces() {
      for (let index = 0; index < 30; index += 1) yield piece;
    }
    expect(await files.write('streamed', pieces())).toMatchObject({ sizeBytes: 3_000_000 });
    let size = 0;
    for await (const part of files.stream('streamed') as unknown as AsyncIterable<Uint8Array>) size += part.length;
    expect(size).toBe(3_000_000);
    const blob = new Blob(['from a web stream']).stream() as ReadableStream<Uint8Array>;
    await files.write('web', blob);
    expect(await files.readText('web')).toBe('from a web stream');
  });

  test('a stream that breaks leaves the old file and no other', async () => {
    const files = await open();
    await files.write('kept/file', 'old');
    async function* broken() {
      yield Buffer.from('new');
      throw new Error('the source broke');
    }
    await expect(files.write('kept/file', broken())).rejects.toThrow('the source broke');
    expect(await files.readText('kept/file')).toBe('old');
    await expect(files.write('kept/never', broken())).rejects.toThrow('the source broke');
    // The guest hears of it just after we do.
    let names: string[];
    do names = (await files.list('kept')).map((entry) => entry.name);
    while (names.length > 1);
    expect(names).toEqual(['file']);
  });

  test('lists sorted, and below with recursive', async () => {
    const files = await open();
    await files.writeMany({ 'tree/b': '1', 'tree/a/x': '22', 'tree/c': '' });
    const flat = await files.list('tree');
    expect(flat.map(({ path, type }) => [path, type])).toEqual([
      ['/workspace/tree/a', 'dir'],
      ['/workspace/tree/b', 'file'],
      ['/workspace/tree/c', 'file'],
    ]);
    const deep = await files.list('/workspace/tree', { recursive: true });
    expect(deep.map(({ name: entry, sizeBytes }) => [entry, sizeBytes])).toContainEqual(['x', 2]);
    expect(deep).toHaveLength(4);
    await expect(files.list('tree', { maxEntries: 2 })).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
    expect(await files.list('tree', { maxEntries: 3 })).toHaveLength(3);
  });

  test('moves, copies, makes and removes', async () => {
    const files = await open();
    await files.write('from/x', 'content');
    await files.copy('from', 'copied');
    await files.move('from', 'deep/moved');
    expect(await files.exists('from')).toBe(false);
    expect(await files.readText('deep/moved/x')).toBe('content');
    expect(await files.readText('copied/x')).toBe('content');
    await files.mkdir('made/by/us', { mode: 0o700 });
    await files.mkdir('made/by/us');
    expect(await files.stat('made/by/us')).toMatchObject({ type: 'dir', mode: 0o700 });
    await expect(files.remove('made')).rejects.toMatchObject({ code: 'IS_A_DIRECTORY' });
    expect(await files.remove('made', { recursive: true })).toBe(true);
    expect(await files.remove('made', { recursive: true })).toBe(false);
    await expect(files.copy('copied', 'copied/inside')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('answers for what is missing', async () => {
    const files = await open();
    await expect(files.read('missing')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(files.list('missing')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(files.move('missing', 'x')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    await expect(files.copy('missing', 'x')).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect(await files.stat('missing')).toBeNull();
    expect(await files.exists('missing')).toBe(false);
    expect(await files.remove('missing')).toBe(false);
  });
});

describeWithEngine('files and commands', () => {
  const manager = testManager();

  test('files are owned by the command user, and commands may change them', async () => {
    const sandbox = await manager.open({ image: IMAGES.debian, user: '1000:1000', session: 'isolated' });
    await sandbox.files.write('new/file', 'x');
    const result = await sandbox.exec('stat -c "%u:%g %a" new new/file . && echo more >> new/file && id -u');
    expect(result.stdout).toBe('1000:1000 755\n1000:1000 644\n1000:1000 755\n1000\n');
    expect(await sandbox.files.readText('new/file')).toBe('xmore\n');
  });

  test('writing to a link writes what it points to; listing shows where it points', async () => {
    const sandbox = await manager.open({ image: IMAGES.debian });
    await sandbox.exec('mkdir -p l && echo old > l/target && ln -s target l/link');
    await sandbox.files.write('l/link', 'new');
    expect(await sandbox.files.readText('l/target')).toBe('new');
    expect(await sandbox.files.stat('l/link')).toMatchObject({ type: 'symlink', target: 'target' });
  });

  test('what a guest was writing when it was killed is in nobody’s way', async () => {
    const sandbox = await manager.open({ image: IMAGES.debian, session: 'isolated' });
    // Names as guests gave them that counted from one in every sandbox.
    await sandbox.exec('for n in $(seq 1000000 1000050); do touch .state.$n.cofferdam .state.$n.new.cofferdam; done');
    await sandbox.files.write('state', 'first');
    await sandbox.files.write('state', 'second');
    expect(await sandbox.files.readText('state')).toBe('second');
  });

  test('a static program that is written into an empty image runs there', async () => {
    const debian = await manager.open({ image: IMAGES.alpine, session: 'donor' });
    const busybox = await debian.files.read('/bin/busybox', { maxBytes: 10_000_000 });
    const sandbox = await manager.open({ image: IMAGES.empty, session: 'scratch' });
    await sandbox.files.write('/bin/busybox', busybox.bytes, { mode: 0o755 });
    expect(await sandbox.exec(['/bin/busybox', 'echo', 'from nothing'])).toMatchObject({ stdout: 'from nothing\n' });
    await expect(sandbox.exec('echo no shell')).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND' });
  });
});
