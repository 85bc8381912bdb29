import type { FileChange, Sandbox } from 'cofferdam';
import { classes, describeOnDocker, describeWithEngine, IMAGES, program, testManager, unique, until } from '../support';

type Watch = AsyncIterableIterator<FileChange>;

const short = ({ type, path, from }: FileChange) =>
  from === undefined ? `${type} ${path}` : `${type} ${from} ${path}`;

/** Everything told until `marker` was made, which is the caller's last act. */
async function told(changes: Watch, marker = 'marker'): Promise<string[]> {
  const seen: string[] = [];
  for (;;) {
    const { done, value } = await changes.next();
    if (done) throw new Error(`it ended after ${JSON.stringify(seen)}`);
    if (value.path === marker) return seen;
    // How often a change is told depends on when the kernel is read.
    if (short(value) !== seen.at(-1)) seen.push(short(value));
  }
}

/** Reads until the watch says that something was dropped; gives how much it told before. */
async function untilOverflow(changes: Watch): Promise<number> {
  for (let count = 0; ; count += 1) {
    const { done, value } = await changes.next();
    if (done) throw new Error(`it ended after ${count} changes`);
    if (value.type === 'overflow') return count;
  }
}

/** All that is told until the watch ends by itself. */
async function rest(changes: Watch): Promise<string[]> {
  const seen: string[] = [];
  for await (const change of changes) seen.push(short(change));
  return seen;
}

/** Without `change`s, which come as often as the kernel likes. */
const structure = (changes: string[]) => changes.filter((change) => !change.startsWith('change '));

const isInotify = '[ "$(readlink $fd)" = anon_inode:inotify ]';

/** PID 1's own inotify descriptors. */
async function descriptors(sandbox: Sandbox): Promise<number> {
  const script = `n=0; for fd in /proc/1/fd/*; do if ${isInotify}; then n=$((n+1)); fi; done; echo $n`;
  return Number((await sandbox.exec(script)).stdout);
}

describeWithEngine.each(classes('debian', 'alpine', 'empty'))('a watch on the %s class', (name) => {
  const manager = testManager({ defaults: { image: IMAGES[name] } });

  async function folder() {
    const { files } = await manager.open();
    const root = unique('w');
    await files.mkdir(root);
    return { files, root };
  }

  test('tells what files.write, move and remove do, and nothing of how', async () => {
    const { files, root } = await folder();
    const changes = files.watch(root);
    await files.write(`${root}/a`, 'one');
    await files.write(`${root}/a`, 'two');
    await files.write(`${root}/a`, 'three', { mode: 0o600 });
    await files.move(`${root}/a`, `${root}/b`);
    await files.remove(`${root}/b`);
    await files.write(`${root}/marker`, '');
    expect(await told(changes)).toEqual(['create a', 'change a', 'rename a b', 'delete b']);
    await changes.return?.();
  });

  test('a write that is given up leaves no trace', async () => {
    const { files, root } = await folder();
    const changes = files.watch(root);
    async function* broken() {
      yield Buffer.alloc(3_000_000);
      throw new Error('broken');
    }
    await expect(files.write(`${root}/a`, broken())).rejects.toThrow('broken');
    await files.write(`${root}/marker`, '');
    expect(await told(changes)).toEqual([]);
  });

  test('what happens between the call and the first read is told', async () => {
    const { files, root } = await folder();
    const changes = files.watch(root);
    await files.mkdir(`${root}/marker`);
    expect(await told(changes)).toEqual([]);
  });

  test('a call right after it waits for it, however many folders there are', async () => {
    const { files, root } = await folder();
    await Promise.all(Array.from({ length: 300 }, (_, index) => files.mkdir(`${root}/d${index}/deep`)));
    for (let round = 0; round < 10; round += 1) {
      const changes = files.watch(root, { recursive: true });
      await files.write(`${root}/d${round * 29}/deep/f`, '');
      expect(await changes.next()).toMatchObject({ value: { type: 'create', path: `d${round * 29}/deep/f` } });
      await changes.return?.();
    }
  });

  test('folders move with what is in them, and paths are right afterwards', async () => {
    const { files, root } = await folder();
    await files.write(`${root}/old/deep/x`, '');
    const changes = files.watch(root, { recursive: true });
    await files.write(`${root}/old/deep/y`, '');
    await files.move(`${root}/old`, `${root}/new`);
    await files.write(`${root}/new/deep/z`, '');
    await files.move(`${root}/new/deep`, `${root}/flat`);
    await files.remove(`${root}/flat/x`);
    await files.write(`${root}/marker`, '');
    expect(structure(await told(changes))).toEqual([
      'create old/deep/y',
      'rename old new',
      'create new/deep/z',
      'rename new/deep flat',
      'delete flat/x',
    ]);
  });

  test('moved in is new with all below it, moved out is gone as one', async () => {
    const { files, root } = await folder();
    const outside = unique('out');
    await files.write(`${outside}/in/side/f`, '');
    const changes = files.watch(root, { recursive: true });
    await files.move(`${outside}/in`, `${root}/in`);
    await files.write(`${root}/in/side/g`, '');
    // What is moved out again before the guest has looked into it was never seen.
    const found = structure(await told(changes, 'in/side/g'));
    await files.move(`${root}/in`, `${outside}/back`);
    await files.write(`${outside}/back/side/unseen`, '');
    await files.move(`${outside}/back/side/unseen`, `${root}/seen`);
    await files.write(`${root}/marker`, '');
    // Whether g was found or told, it is told once.
    expect(found).toEqual(['create in', 'create in/side', 'create in/side/f']);
    expect(structure(await told(changes))).toEqual(['delete in', 'create seen']);
  });

  test('without recursive, only the folder itself', async () => {
    const { files, root } = await folder();
    await files.mkdir(`${root}/there`);
    const changes = files.watch(root);
    await files.write(`${root}/there/deep`, '');
    await files.write(`${root}/made/deep`, '');
    await files.write(`${root}/marker`, '');
    expect(structure(await told(changes))).toEqual(['create made']);
  });

  test('one file is told by its name, also when it is replaced, and again after it was gone', async () => {
    const { files, root } = await folder();
    await files.write(`${root}/it`, 'one');
    const changes = files.watch(`${root}/it`);
    await files.write(`${root}/other`, '');
    await files.write(`${root}/it`, 'two');
    await files.remove(`${root}/it`);
    await files.write(`${root}/it`, 'three');
    await files.remove(root, { recursive: true });
    expect(await rest(changes)).toEqual(['change it', 'delete it', 'create it', 'delete it']);
  });

  test('ends when its folder is removed, or moved away', async () => {
    for (const leave of ['remove', 'move'] as const) {
      const { files, root } = await folder();
      await files.write(`${root}/sub/f`, '');
      const changes = files.watch(root, { recursive: true });
      await files.write(`${root}/sub/g`, '');
      if (leave === 'move') await files.move(root, unique('elsewhere'));
      else await files.remove(root, { recursive: true });
      const seen = await rest(changes);
      expect(seen[0]).toBe('create sub/g');
      expect(seen.at(-1)).toBe('delete ');
      expect(await changes.next()).toEqual({ done: true, value: undefined });
    }
  });

  test('goes on when a folder above it is renamed', async () => {
    const { files, root } = await folder();
    await files.mkdir(`${root}/above/watched`);
    const changes = files.watch(`${root}/above/watched`, { recursive: true });
    await files.move(`${root}/above`, `${root}/moved`);
    await files.write(`${root}/moved/watched/new/f`, '');
    await files.write(`${root}/moved/watched/marker`, '');
    expect(structure(await told(changes))).toEqual(['create new', 'create new/f']);
  });

  test('two at once are told the same', async () => {
    const { files, root } = await folder();
    const watches = [files.watch(root), files.watch(root, { recursive: true })];
    await files.write(`${root}/a`, '');
    await files.write(`${root}/marker`, '');
    for (const changes of watches) expect(await told(changes)).toEqual(['create a']);
  });

  test('the first read says what is wrong', async () => {
    const { files, root } = await folder();
    await expect(files.watch(`${root}/missing`).next()).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
      message: expect.stringContaining('missing'),
      stack: expect.stringContaining('watch.test.ts'),
    });
    await expect(files.watch(7 as unknown as string).next()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(files.watch(root, { recursive: 1 as unknown as boolean }).next()).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
    await expect(files.watch(root, null as unknown as object).next()).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
    });
  });

  test('an aborted one rejects with the reason, before, during and between reads', async () => {
    const { files, root } = await folder();
    const reason = new Error('enough');
    await expect(files.watch(root, { signal: AbortSignal.abort(reason) }).next()).rejects.toBe(reason);
    const during = new AbortController();
    const reading = files.watch(root, { signal: during.signal }).next();
    setTimeout(() => during.abort(reason), 20);
    await expect(reading).rejects.toBe(reason);
    const between = new AbortController();
    const changes = files.watch(root, { signal: between.signal });
    await files.write(`${root}/a`, '');
    expect(await changes.next()).toMatchObject({ value: { type: 'create', path: 'a' } });
    between.abort(reason);
    await expect(changes.next()).rejects.toBe(reason);
    expect(await changes.next()).toEqual({ done: true, value: undefined });
  });

  test('return() ends a read that waits', async () => {
    const { files, root } = await folder();
    const changes = files.watch(root);
    const waiting = changes.next();
    await changes.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
  });
});

describeWithEngine.each(classes('debian', 'alpine'))('a watch and commands on the %s class', (name) => {
  const manager = testManager({ defaults: { image: IMAGES[name] } });

  async function folder() {
    const sandbox = await manager.open();
    const root = unique('w');
    await sandbox.files.mkdir(root);
    return { sandbox, root, run: (script: string) => sandbox.exec(script, { cwd: root }) };
  }

  test('a tree that is made at once is told completely, each entry once', async () => {
    const { sandbox, root, run } = await folder();
    for (let round = 0; round < 20; round += 1) {
      const changes = sandbox.files.watch(root, { recursive: true });
      await run(`mkdir -p a/b/c && touch a/b/c/f a/g && mkdir a/b/d && echo x > a/b/d/h && mkdir marker`);
      const seen = structure(await told(changes));
      const all = ['a', 'a/b', 'a/b/c', 'a/b/c/f', 'a/g', 'a/b/d', 'a/b/d/h'].map((path) => `create ${path}`);
      expect([...seen].sort()).toEqual([...all].sort());
      for (const change of seen) {
        const above = change.slice(0, change.lastIndexOf('/'));
        if (change.includes('/')) expect(seen.indexOf(above)).toBeLessThan(seen.indexOf(change));
      }
      await changes.return?.();
      await run('rm -r a marker');
    }
  });

  test('tells changes of content and mode, and a rename over another file as one', async () => {
    const { sandbox, root, run } = await folder();
    await run('echo x > a; echo x > b');
    const changes = sandbox.files.watch(root);
    await run('echo more >> a; chmod 600 a; mv a b; rm b; mkdir marker');
    const seen = await told(changes);
    expect(structure(seen)).toEqual(['rename a b', 'delete b']);
    expect(seen[0]).toBe('change a');
    await changes.return?.();
  });

  test('follows folders however fast they are renamed, made again and removed', async () => {
    const { sandbox, root, run } = await folder();
    const changes = sandbox.files.watch(root, { recursive: true });
    const script = `for i in 1 2 3 4 5 6 7 8 9 10; do
      mkdir t; echo x > t/f; mv t kept$i; mkdir t; mkdir t/u; mv t/u kept$i/u; rmdir t; echo x > kept$i/u/g
    done; mkdir settled`;
    await run(script);
    await told(changes, 'settled');
    // Whatever was told on the way, every folder is watched under its right path in the end.
    await run('for i in 1 2 3 4 5 6 7 8 9 10; do touch kept$i/u/last$i; done; mkdir marker');
    const seen = await told(changes);
    for (let i = 1; i <= 10; i += 1) expect(seen).toContain(`create kept${i}/u/last${i}`);
    await changes.return?.();
  });

  test('of 10,000 files made by one command, every one is told, or that some are not', async () => {
    const { sandbox, root, run } = await folder();
    const changes = sandbox.files.watch(root, { recursive: true });
    await run('mkdir many && cd many && seq 1 10000 | xargs touch && mkdir ../marker');
    const seen = new Set(structure(await told(changes)));
    const missing = Array.from({ length: 10_000 }, (_, index) => `create many/${index + 1}`).filter(
      (change) => !seen.has(change),
    );
    if (!seen.has('overflow ')) expect(missing).toEqual([]);
    await changes.return?.();
  });

  test('leaving early frees the descriptor in the sandbox, and so do return() and abort before any read', async () => {
    const { sandbox, root } = await folder();
    const { files } = sandbox;
    const before = await descriptors(sandbox);
    const [left, returned] = [files.watch(root), files.watch(root)];
    const controller = new AbortController();
    const aborted = files.watch(root, { signal: controller.signal });
    await until(async () => (await descriptors(sandbox)) === before + 3);
    await files.write(`${root}/a`, '');
    for await (const change of left) {
      expect(short(change)).toBe('create a');
      break;
    }
    await until(async () => (await descriptors(sandbox)) === before + 2);
    expect(await returned.return?.()).toEqual({ done: true, value: undefined });
    controller.abort();
    await until(async () => (await descriptors(sandbox)) === before);
    await expect(aborted.next()).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describeWithEngine('a watch that nobody reads', () => {
  // Where a hundred thousand files are a matter of seconds on any disk.
  const MEMORY = '/dev/shm';
  const manager = testManager({ defaults: { image: IMAGES.alpine } });

  test('costs the sandbox no memory, slows no other call, and says afterwards that something was dropped', async () => {
    const sandbox = await manager.open();
    await sandbox.files.mkdir(`${MEMORY}/busy`);
    const changes = sandbox.files.watch(`${MEMORY}/busy`, { recursive: true });
    const resident = async () => {
      const { stdout } = await sandbox.exec("grep VmRSS /proc/1/status | tr -dc '0-9'");
      return Number(stdout);
    };
    await sandbox.exec(`cd ${MEMORY}/busy && seq 1 1000 | xargs touch && seq 1 1000 | xargs rm`);
    const before = await resident();
    // Names long enough that neither the channel nor the kernel's queue holds them all.
    const names = `seq 1 5000 | sed s/^/${'x'.repeat(60)}/`;
    const busy = sandbox.exec(
      `cd ${MEMORY}/busy && for i in 1 2 3 4 5 6 7 8 9 10; do ${names} | xargs touch && ${names} | xargs rm; done`,
    );
    let calls = 0;
    for (; await Promise.race([busy.then(() => false), sandbox.files.exists('.')]); calls += 1);
    expect(calls).toBeGreaterThan(20);
    expect((await busy).exitCode).toBe(0);
    expect((await resident()) - before).toBeLessThan(4_000);
    expect(await untilOverflow(changes)).toBeGreaterThan(1_000);
  });

  test('goes on after an overflow, in folders that were made during it as well', async () => {
    const sandbox = await manager.open();
    await sandbox.files.mkdir(`${MEMORY}/flood`);
    const changes = sandbox.files.watch(`${MEMORY}/flood`, { recursive: true });
    const names = `seq 1 10000 | sed s/^/${'y'.repeat(100)}/`;
    await sandbox.exec(
      `cd ${MEMORY}/flood && for i in 1 2 3 4; do ${names} | xargs touch; ${names} | xargs rm; done; mkdir -p deep/er`,
    );
    await untilOverflow(changes);
    await sandbox.exec(`cd ${MEMORY}/flood && touch deep/er/f && mkdir marker`);
    expect(await told(changes)).toContain('create deep/er/f');
  });

  test('does not keep an idle sandbox', async () => {
    const idle = testManager({ defaults: { image: IMAGES.alpine } });
    const sandbox = await idle.open();
    await sandbox.extend({ idleTimeoutMs: 1_000 });
    const changes = sandbox.files.watch('.');
    await expect(changes.next()).rejects.toMatchObject({ code: 'SANDBOX_LOST', details: { reason: 'idle' } });
  });

  test('rejects when its sandbox is closed', async () => {
    const sandbox = await manager.open({ session: 'isolated' });
    const changes = sandbox.files.watch('.');
    await sandbox.files.write('a', '');
    await changes.next();
    const next = changes.next();
    const rejected = expect(next).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' });
    await sandbox.close();
    await rejected;
  });
});

describeOnDocker('a watch whose link through the engine is cut', () => {
  // In a program of its own: only a link that goes through the engine has a process to kill.
  const BODY = `
    const owner = new SandboxManager({ defaults: { image: ${JSON.stringify(IMAGES.alpine)} } });
    const sandbox = await owner.open();
    const visitor = new SandboxManager();
    const visited = await visitor.get(sandbox.id);
    const changes = visited.files.watch('.', { recursive: true });
    const seen = [];
    const next = async () => seen.push((await changes.next()).value);
    await visited.files.write('before', '');
    await next();
    const overflow = next();
    const kill = 'for p in /proc/[0-9]*; do tr "\\\\0" " " < $p/cmdline | grep -q "[g]uest link" && kill -9 $(basename $p) && echo cut; done; true';
    const cut = (await sandbox.exec(kill)).stdout;
    await overflow;
    await sandbox.files.write('after/f', '');
    await next();
    await next();
    console.log(JSON.stringify({ cut, seen }));
    await visitor.close();
    await owner.close();
  `;

  test('goes on over a new one, and says that something may have been missed', async () => {
    const { output } = await program(BODY, { COFFERDAM_SHORTCUT: 'off' }).ended;
    expect(JSON.parse(output)).toEqual({
      cut: 'cut\n',
      seen: [
        { type: 'create', path: 'before' },
        { type: 'overflow', path: '' },
        { type: 'create', path: 'after' },
        { type: 'create', path: 'after/f' },
      ],
    });
  });
});
