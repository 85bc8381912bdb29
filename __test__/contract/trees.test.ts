import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  ftruncateSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TransferProgress } from 'cofferdam';
import { classes, describeWithEngine, IMAGES, testManager, until } from '../support';

const home = mkdtempSync(path.join(tmpdir(), 'cofferdam-trees-'));
let count = 0;
const fresh = () => path.join(home, `place-${count++}`);

afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Everything that is to be kept of a tree, by path; names as bytes, for not all of them are text. */
function look(root: string): Record<string, string> {
  const seen: Record<string, string> = {};
  const visit = (place: Buffer, below: string) => {
    const stat = lstatSync(place, { bigint: true });
    const mode = (stat.mode & 0o7777n).toString(8);
    let what = `dir ${mode}`;
    if (stat.isSymbolicLink()) what = `-> ${readlinkSync(place, 'latin1')}`;
    else if (stat.isFile()) what = `file ${mode} ${stat.size} ${digest(place, stat.size)}`;
    seen[below] = `${what} ${stat.mtimeNs}`;
    if (!stat.isDirectory()) return;
    for (const name of readdirSync(place, 'buffer')) {
      visit(Buffer.concat([place, Buffer.from('/'), name]), `${below}/${name.toString('latin1')}`);
    }
  };
  visit(Buffer.from(root), '');
  return seen;
}

function digest(file: Buffer, size: bigint): string {
  return size > 100_000_000n ? 'large' : createHash('sha256').update(readFileSync(file)).digest('hex');
}

/** Links, odd names, modes, times, holes, empty files and empty folders. */
function makeTree(): string {
  const root = fresh();
  mkdirSync(path.join(root, 'deep/er/est'), { recursive: true });
  mkdirSync(path.join(root, 'empty folder'));
  writeFileSync(path.join(root, 'empty'), '');
  writeFileSync(path.join(root, 'deep/er/est/file.txt'), 'far down');
  writeFileSync(path.join(root, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(path.join(root, 'secret'), 's', { mode: 0o600 });
  writeFileSync(path.join(root, 'big.bin'), Buffer.alloc(3_000_000, 'xyz'));
  writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe, 0x2e, 0x80])]), 'not UTF-8');
  for (const name of ['with space', 'né 日本 🦀', '-rf', '"quoted"', 'new\nline', '.hidden', 'x'.repeat(255)]) {
    writeFileSync(path.join(root, name), name);
  }
  symlinkSync('deep/er', path.join(root, 'link'));
  symlinkSync('/etc/passwd', path.join(root, 'absolute link'));
  symlinkSync('../../../../nowhere', path.join(root, 'dangling link'));
  const sparse = openSync(path.join(root, 'sparse'), 'w');
  writeSync(sparse, 'needle', 5_000_000);
  ftruncateSync(sparse, 20_000_000);
  lutimesSync(path.join(root, 'link'), 1_000_000, 1_234_567.5);
  utimesSync(path.join(root, 'empty'), 1_000_000_000, 1_000_000_000.123);
  utimesSync(path.join(root, 'deep/er'), 1_100_000_000, 1_100_000_000);
  chmodSync(path.join(root, 'deep/er'), 0o711);
  return root;
}

describeWithEngine.each(classes('debian', 'alpine', 'empty'))('trees on the %s class', (name) => {
  const manager = testManager();
  const open = () => manager.open({ image: IMAGES[name] });

  test('go in and out again as they were: content, modes, times, links, odd names, holes', async () => {
    const { files } = await open();
    const [from, to] = [makeTree(), fresh()];
    const sent = await files.upload(from, 'tree');
    expect(sent).toMatchObject({ files: 14, dirs: 4, links: 3, skipped: [] });
    expect(sent.bytes).toBeLessThan(4_000_000);
    const fetched = await files.download('tree', to);
    expect(look(to)).toEqual(look(from));
    expect({ ...fetched, durationMs: 0 }).toEqual({ ...sent, durationMs: 0 });
    expect(lstatSync(path.join(to, 'sparse')).blocks * 512).toBeLessThan(1_000_000);
  });

  test('go where they are sent: under their own name, over what is there, file by file', async () => {
    const { files } = await open();
    const from = fresh();
    mkdirSync(from);
    writeFileSync(path.join(from, 'a'), 'new');
    await files.upload(from);
    expect(await files.readText(`/workspace/${path.basename(from)}/a`)).toBe('new');
    await files.writeMany({ 'there/a': 'old', 'there/only there': 'kept' });
    await files.upload(from, 'there');
    expect(await files.readText('there/a')).toBe('new');
    expect(await files.readText('there/only there')).toBe('kept');
    const left = (await files.list('.', { recursive: true })).filter((entry) => entry.name.includes('.cofferdam'));
    expect(left).toEqual([]);
  });

  test('a single file goes to its path, or into a folder that is named with a slash', async () => {
    const { files } = await open();
    const file = fresh();
    writeFileSync(file, 'one file', { mode: 0o640 });
    expect(await files.upload(file, 'deep/down/copy')).toMatchObject({ files: 1, dirs: 0, bytes: 8 });
    expect(await files.stat('deep/down/copy')).toMatchObject({ mode: 0o640, sizeBytes: 8 });
    await files.upload(file, 'folder/');
    expect(await files.readText(`folder/${path.basename(file)}`)).toBe('one file');
    const to = fresh();
    await files.download('deep/down/copy', `${to}/`);
    expect(readFileSync(path.join(to, 'copy'), 'utf8')).toBe('one file');
    await files.download('deep/down/copy', path.join(to, 'other/name'));
    expect(readFileSync(path.join(to, 'other/name'), 'utf8')).toBe('one file');
  });

  test('sync carries only what changed, in both directions', async () => {
    const { files } = await open();
    const [from, to] = [makeTree(), fresh()];
    expect(await files.upload(from, 'synced', { sync: true })).toMatchObject({ files: 14, links: 3 });
    expect(await files.upload(from, 'synced', { sync: true })).toMatchObject({ files: 0, dirs: 0, links: 0, bytes: 0 });
    writeFileSync(path.join(from, 'deep/er/est/file.txt'), 'changed');
    writeFileSync(path.join(from, 'deep/added'), 'added');
    rmSync(path.join(from, 'link'));
    symlinkSync('elsewhere', path.join(from, 'link'));
    expect(await files.upload(from, 'synced', { sync: true })).toMatchObject({ files: 2, links: 1, bytes: 12 });
    expect(await files.download('synced', to, { sync: true })).toMatchObject({ files: 15, links: 3 });
    expect(look(to)).toEqual({ ...look(from), '': look(to)[''] });
    expect(await files.download('synced', to, { sync: true })).toMatchObject({ files: 0, dirs: 0, links: 0, bytes: 0 });
    await files.write('synced/empty', 'no more');
    rmSync(path.join(to, 'big.bin'));
    expect(await files.download('synced', to, { sync: true })).toMatchObject({ files: 2, links: 0, bytes: 3_000_007 });
    expect(readFileSync(path.join(to, 'empty'), 'utf8')).toBe('no more');
    const file = path.join(from, 'run.sh');
    expect(await files.upload(file, 'one', { sync: true })).toMatchObject({ files: 1 });
    expect(await files.upload(file, 'one', { sync: true })).toMatchObject({ files: 0 });
  });

  test('leave out what is excluded and what .gitignore files say, and tell it', async () => {
    const { files } = await open();
    const from = fresh();
    mkdirSync(path.join(from, 'node_modules/a'), { recursive: true });
    mkdirSync(path.join(from, 'src'));
    for (const file of ['node_modules/a/index.js', 'src/a.ts', 'src/a.log', 'keep.log', '.env']) {
      writeFileSync(path.join(from, file), file);
    }
    writeFileSync(path.join(from, '.gitignore'), 'node_modules/\n*.log\n!/keep.log\n');
    const report = await files.upload(from, 'filtered', { gitignore: true, exclude: ['.env'] });
    expect(report.files).toBe(3);
    const skipped = report.skipped.sort((a, b) => (a.path < b.path ? -1 : 1));
    expect(skipped).toEqual([
      { path: '.env', reason: 'excluded' },
      { path: 'node_modules', reason: 'ignored by .gitignore' },
      { path: 'src/a.log', reason: 'ignored by .gitignore' },
    ]);
    expect((await files.list('filtered')).map((entry) => entry.name)).toEqual(['.gitignore', 'keep.log', 'src']);
    await files.upload(from, 'whole');
    const to = fresh();
    const fetched = await files.download('whole', to, { gitignore: true, exclude: ['/src'] });
    expect(fetched.files).toBe(3);
    expect(readdirSync(to).sort()).toEqual(['.env', '.gitignore', 'keep.log']);
    const bad = files.upload(from, 'x', { exclude: ['a{'] });
    await expect(bad).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('a{') });
  });

  test('say what is wrong, and on which side', async () => {
    const { files } = await open();
    const [missing, file, folder] = [fresh(), fresh(), fresh()];
    writeFileSync(file, 'x');
    mkdirSync(folder);
    await files.writeMany({ 'plain file': 'x', 'a folder/x': 'x' });
    const onTheHost = (code: string) => ({ code, message: expect.stringContaining('on the host') });
    await expect(files.upload(missing, 'x')).rejects.toMatchObject(onTheHost('FILE_NOT_FOUND'));
    await expect(files.upload('', 'x')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(files.upload(folder, 'plain file')).rejects.toMatchObject({ code: 'NOT_A_DIRECTORY' });
    await expect(files.upload(file, 'a folder')).rejects.toMatchObject({ code: 'IS_A_DIRECTORY' });
    await expect(files.download('missing', missing)).rejects.toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect(existsSync(missing)).toBe(false);
    await expect(files.download('a folder', file)).rejects.toMatchObject(onTheHost('NOT_A_DIRECTORY'));
    await expect(files.download('plain file', folder)).rejects.toMatchObject(onTheHost('IS_A_DIRECTORY'));
    await expect(files.upload(file, 'x', { exclude: 'a' as never })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });

  test('tell how far they are', async () => {
    const { files } = await open();
    const seen: TransferProgress[] = [];
    const report = await files.upload(makeTree(), 'told', { onProgress: (progress) => seen.push(progress) });
    await until(() => seen.length > 0 && seen.at(-1)?.files === report.files);
    expect(seen.at(-1)).toMatchObject({ files: report.files, bytes: report.bytes });
  });

  test('tell it to one callback at a time, also to one that takes its time', async () => {
    const { files } = await open();
    let running = 0;
    let most = 0;
    const onProgress = async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 10));
      running -= 1;
    };
    await files.upload(makeTree(), 'slowly', { onProgress });
    await until(() => most > 0 && running === 0);
    expect(most).toBe(1);
  });

  test.each([
    ['rejects', () => Promise.reject(new Error('mine'))],
    [
      'throws',
      () => {
        throw new Error('mine');
      },
    ],
  ])('reject with the error of a callback that %s, and leave nothing half there', async (_, onProgress) => {
    const { files } = await open();
    const from = fresh();
    mkdirSync(from);
    for (let index = 0; index < 8; index++)
      writeFileSync(path.join(from, `f${index}`), Buffer.alloc(30_000_000, index));
    await files.mkdir('refused');
    await expect(files.upload(from, 'refused/tree', { onProgress })).rejects.toThrow('mine');
    await until(async () => (await files.list('refused')).length === 0);
  });

  test('what is aborted leaves nothing half there', async () => {
    const { files } = await open();
    const [from, to] = [fresh(), fresh()];
    mkdirSync(from);
    for (let index = 0; index < 8; index++)
      writeFileSync(path.join(from, `f${index}`), Buffer.alloc(30_000_000, index));
    const reason = new Error('enough');
    const aborting = () => {
      const controller = new AbortController();
      return { signal: controller.signal, onProgress: () => controller.abort(reason) };
    };
    await expect(files.upload(from, 'cut/off', aborting())).rejects.toBe(reason);
    await until(async () => (await files.list('cut')).length === 0);
    await files.upload(from, 'whole');
    await expect(files.download('whole', to, aborting())).rejects.toBe(reason);
    const beside = () => readdirSync(home).filter((entry) => entry.includes(path.basename(to)));
    await until(() => beside().length === 0);
    // Over what is there: each file is the old one or the new one.
    await files.writeMany(Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`over/f${index}`, 'old'])));
    await expect(files.upload(from, 'over', aborting())).rejects.toBe(reason);
    // What was on its way may still arrive, so that between two files there is no draft for a moment, and then the next.
    await until(async () => {
      const entries = await files.list('over');
      const drafts = entries.filter(({ name }) => name.includes('.cofferdam'));
      for (const entry of entries) if (!drafts.includes(entry)) expect([3, 30_000_000]).toContain(entry.sizeBytes);
      return drafts.length === 0;
    });
  });
});

describeWithEngine('trees in a sandbox that means harm', () => {
  const manager = testManager();
  const open = () => manager.open({ image: IMAGES.debian });

  test('devices, sockets and FIFOs are skipped, and waited for by nobody', async () => {
    const { files, exec } = await open().then((sandbox) => ({
      files: sandbox.files,
      exec: sandbox.exec.bind(sandbox),
    }));
    const made = await exec(
      'mkdir odd && mkfifo odd/fifo && perl -MIO::Socket::UNIX -e \'IO::Socket::UNIX->new(Local => "odd/socket", Listen => 1)\' && echo x > odd/file',
    );
    expect(made.stderr).toBe('');
    const to = fresh();
    const report = await files.download('odd', to);
    expect(report.files).toBe(1);
    expect(report.skipped.map((skipped) => skipped.path).sort()).toEqual(['fifo', 'socket']);
    expect(readdirSync(to)).toEqual(['file']);
    const devices = await files.download('/dev', fresh());
    expect(devices.skipped.map((skipped) => skipped.path)).toContain('null');
    await expect(files.download('odd/fifo', fresh())).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('a terabyte of nothing takes no time and no room', async () => {
    const sandbox = await open();
    await sandbox.exec('mkdir holes && truncate -s 1T holes/big && printf needle >> holes/big');
    const to = fresh();
    const report = await sandbox.files.download('holes', to);
    expect(report.bytes).toBeLessThan(100_000);
    const { size, blocks } = lstatSync(path.join(to, 'big'));
    expect([size, blocks * 512 < 1_000_000]).toEqual([2 ** 40 + 6, true]);
  });

  test('folders and files that are swapped for links while they are read lead nowhere', async () => {
    const sandbox = await open();
    await sandbox.exec(
      'mkdir -p /secret tree/d && echo leaked > /secret/f && echo fine > tree/d/f && echo fine > tree/f',
    );
    const swapping = await sandbox.spawn(
      'while :; do mv tree/d d && ln -s /secret tree/d && rm tree/d && mv d tree/d; rm tree/f; ln -s /secret/f tree/f; rm tree/f; echo fine > tree/f; done',
    );
    for (let round = 0; round < 150; round++) {
      const to = fresh();
      // Gone in this very moment is an answer, too.
      await sandbox.files.download('tree', to).catch(() => {});
      const read = existsSync(to)
        ? execFileSync('find', [to, '-type', 'f', '-exec', 'cat', '{}', '+'], { encoding: 'utf8' })
        : '';
      expect(read).not.toContain('leaked');
    }
    await swapping.kill();
  });

  test('a link that was fetched once is not written through later', async () => {
    const sandbox = await open();
    const [outside, to] = [fresh(), fresh()];
    mkdirSync(outside);
    await sandbox.exec(['sh', '-c', `mkdir trap && ln -s ${outside} trap/way`]);
    await sandbox.files.download('trap', to);
    await sandbox.exec('rm trap/way && mkdir trap/way && echo evil > trap/way/file');
    for (const sync of [false, true]) {
      await expect(sandbox.files.download('trap', to, { sync })).rejects.toMatchObject({ code: 'NOT_A_DIRECTORY' });
    }
    expect(readdirSync(outside)).toEqual([]);
  });

  test('programs do not bring the right to be somebody else', async () => {
    const sandbox = await open();
    await sandbox.exec('mkdir bin && cp /bin/true bin/su && chmod 6755 bin/su');
    const to = fresh();
    await sandbox.files.download('bin', to);
    expect(lstatSync(path.join(to, 'su')).mode & 0o7777).toBe(0o755);
  });

  test('what is uploaded is owned by the command user', async () => {
    const sandbox = await manager.open({ image: IMAGES.debian, user: '1234:5678', session: 'isolated' });
    await sandbox.files.upload(makeTree(), 'new/tree');
    const { stdout } = await sandbox.exec('find new -printf "%U:%G\\n" | sort -u; cat new/tree/secret');
    expect(stdout).toBe('1234:5678\ns');
  });

  test('a workspace that is full refuses the rest, and is as it was', async () => {
    const sandbox = await manager.open({ image: IMAGES.debian, session: 'isolated', limits: { workspaceMb: 20 } });
    const from = fresh();
    mkdirSync(from);
    for (let index = 0; index < 4; index++) writeFileSync(path.join(from, `f${index}`), Buffer.alloc(10_000_000));
    await expect(sandbox.files.upload(from, 'much')).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
    await until(async () => (await sandbox.files.list('.')).length === 0);
    await sandbox.files.upload(path.join(from, 'f0'), 'fits');
  });
});
