import { type OpenOptions, SandboxManager } from 'cofferdam';
import { ground, isNamespaces } from '../ground';
import { describeWithEngine, IMAGES, record, testManager, unique, until } from '../support';

const image = IMAGES.alpine;

describeWithEngine('the warm pool', () => {
  const warmIds = async (manager: SandboxManager) => (await manager.list({ state: 'warm' })).map(({ id }) => id);

  /** Waits for boxes that this manager itself has made ready: others may have theirs. */
  async function ready(manager: SandboxManager, events: ReturnType<typeof record>, count: number) {
    await until(() => events.some((event) => event.type === 'warming' && event.ready === count));
    return warmIds(manager);
  }

  test('gives a ready sandbox to a session with all that the session asked for, and fills up again', async () => {
    const manager = testManager({ warm: { [image]: 2 }, defaults: { image, env: { A: 'default' } } });
    const events = record(manager);
    const before = await ready(manager, events, 2);
    const scope = { workflow: unique() };
    const sandbox = await manager.open({
      scope,
      user: '1000:1000',
      workdir: '/work/here',
      env: { B: 'mine' },
      labels: { team: 'blue' },
      files: { 'in.txt': 'in' },
      init: 'cat in.txt > out.txt',
    });
    expect(sandbox.created).toBe(true);
    expect(before).toContain(sandbox.id);
    const { stdout } = await sandbox.exec('id -u; pwd; echo $A $B; cat out.txt; stat -c %u .');
    expect(stdout).toBe('1000\n/work/here\ndefault mine\nin1000\n');
    expect(await sandbox.info()).toMatchObject({ key: sandbox.key, state: 'running', labels: { team: 'blue' } });
    const info = { id: sandbox.id, key: sandbox.key, workdir: '/work/here', labels: { team: 'blue' } };
    expect(await manager.list({ scope })).toMatchObject([info]);
    // Another program knows it only by its guest's word.
    const other = testManager();
    expect(await other.list({ scope })).toMatchObject([info]);
    expect(await other.open({ scope, image })).toMatchObject({ id: sandbox.id, created: false });
    expect(await other.get(sandbox.id)).toMatchObject({ key: sandbox.key });
    await until(() => events.filter((event) => event.type === 'warming' && event.ready === 2).length > 1);
    await sandbox.close();
    expect(await manager.list({ scope })).toEqual([]);
  });

  test('shows nothing of what made a sandbox ready', async () => {
    const manager = testManager({ warm: { [image]: 1 }, defaults: { image } });
    const before = await ready(manager, record(manager), 1);
    const sandbox = await manager.open();
    expect(before).toContain(sandbox.id);
    expect(await sandbox.processes()).toEqual([]);
    expect(await sandbox.files.list()).toEqual([]);
    expect((await sandbox.exec('echo $PYTHONDONTWRITEBYTECODE')).stdout).toBe('\n');
  });

  test.each<[string, OpenOptions]>([
    ['limits', { limits: { memoryMb: 64 } }],
    // Without an engine there is none to be had.
    ...(isNamespaces ? [] : [['network', { network: true }] as [string, OpenOptions]]),
    ['a read-only root', { readOnlyRoot: true }],
    ['persistence', { persist: true }],
    ['an image', { image: IMAGES.debian }],
  ])('never crosses profiles: other %s are made to order', async (_, options) => {
    const manager = testManager({ warm: { [image]: 1 }, defaults: { image } });
    const events = record(manager);
    const before = await ready(manager, events, 1);
    const sandbox = await manager.open({ scope: { workflow: unique() }, ...options });
    expect(before).not.toContain(sandbox.id);
    const info = await sandbox.info();
    expect(info.limits.memoryMb).toBe('limits' in options ? 64 : 2048);
    expect(info.network).toBe('network' in options);
    await sandbox.close('persist' in options ? { keepData: false } : {});
    await manager.close();
  });

  test('one that died while it waited is never handed out', async () => {
    // As nobody else's: other suites need theirs.
    const memoryMb = 2_000;
    const manager = testManager({ warm: { [image]: 1 }, defaults: { image, limits: { memoryMb } } });
    const events = record(manager);
    await ready(manager, events, 1);
    const own = (await manager.list({ state: 'warm' })).filter(({ limits }) => limits.memoryMb === memoryMb);
    expect(own).toHaveLength(1);
    for (const { id } of own) await (await ground.ownWarm(id))?.kill();
    const sandbox = await manager.open();
    expect((await sandbox.exec('echo alive')).stdout).toBe('alive\n');
    await until(() => events.filter((event) => event.type === 'warming' && event.ready === 1).length > 1);
    await manager.close();
  });

  test('a session that another program has is adopted, not doubled', async () => {
    const scope = { workflow: unique() };
    const owner = testManager({ defaults: { image } });
    const first = await owner.open({ scope });
    const manager = testManager({ warm: { [image]: 1 }, defaults: { image } });
    await ready(manager, record(manager), 1);
    expect(await manager.open({ scope })).toMatchObject({ id: first.id, created: false });
    expect(await owner.list({ scope })).toHaveLength(1);
    await manager.close();
  });

  test('many programs that claim one key from their pools at once get one sandbox', async () => {
    const scope = { workflow: unique() };
    const managers = [1, 2, 3, 4].map(() => testManager({ warm: { [image]: 1 }, defaults: { image } }));
    await Promise.all(managers.map((manager) => ready(manager, record(manager), 1)));
    const opened = await Promise.all(managers.map((manager) => manager.open({ scope })));
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
    expect(opened.filter(({ created }) => created)).toHaveLength(1);
    expect(await managers[0]?.list({ scope })).toHaveLength(1);
    await Promise.all(managers.map((manager) => manager.close()));
  });

  test('is drained on close, also what is just being made', async () => {
    const manager = new SandboxManager({ warm: { [image]: 3 }, defaults: { image, limits: { memoryMb: 77 } } });
    const events = record(manager);
    await until(() => events.some(({ type }) => type === 'warming'));
    await manager.close();
    expect(await ground.withMemoryMb(77)).toEqual([]);
  });

  test('says what is wrong when it cannot be filled, and goes on without', async () => {
    const policy = { allowedImages: [image] };
    const manager = testManager({ warm: { 'nope:1': 1 }, policy, defaults: { image } });
    const events = record(manager);
    const warming = await until(() => events.find(({ type }) => type === 'warming'));
    expect(warming).toMatchObject({ image: 'nope:1', code: 'IMAGE_NOT_ALLOWED' });
    expect((await manager.open()).created).toBe(true);
    expect(() => new SandboxManager({ warm: { python: -1 } })).toThrow(/warm.python/);
    expect(() => new SandboxManager({ warm: { python: 65 } })).toThrow(/at most 64/);
    expect(() => new SandboxManager({ warm: { python: 1 }, defaults: { persist: true } })).toThrow(
      /persist: true to open/,
    );
  });
});
