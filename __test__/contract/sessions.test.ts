import { SandboxManager } from 'cofferdam';
import { isNamespaces } from '../ground';
import { describeWithEngine, IMAGES, record, testManager, unique, until } from '../support';

describeWithEngine('sessions', () => {
  const image = IMAGES.alpine;
  const manager = testManager({ defaults: { image } });

  test('callers of one scope share one sandbox, and others do not', async () => {
    const workflow = unique();
    const [first, second, other] = await Promise.all([
      manager.open({ scope: { workflow, agent: 'a' } }),
      manager.open({ scope: { workflow, agent: 'b' } }),
      manager.open({ scope: { workflow }, session: 'mine' }),
    ]);
    expect(first.key).toBe(`workflow:${workflow}:default`);
    expect(second.id).toBe(first.id);
    expect([first.created, second.created].filter(Boolean)).toHaveLength(1);
    expect(other.id).not.toBe(first.id);
    await first.files.write('note', 'shared');
    expect(await second.files.readText('note')).toBe('shared');
    expect(await other.files.exists('note')).toBe(false);
    expect((await manager.list({ scope: { workflow } })).map(({ id }) => id).sort()).toEqual(
      [first.id, other.id].sort(),
    );
  });

  test('isolated sessions are never shared', async () => {
    const [one, two] = await Promise.all([
      manager.open({ session: 'isolated' }),
      manager.open({ session: 'isolated' }),
    ]);
    expect(one.id).not.toBe(two.id);
    await Promise.all([one.close(), two.close()]);
  });

  test('two managers that open one key at once get one sandbox', async () => {
    const scope = { workflow: unique() };
    const others = [new SandboxManager(), new SandboxManager(), new SandboxManager()];
    const opened = await Promise.all([manager, ...others].map((each) => each.open({ scope, image })));
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
    expect(opened.filter(({ created }) => created)).toHaveLength(1);
    await Promise.all(others.map((each) => each.close()));
    await opened[0]?.close();
  });

  test('a closed session is gone, and the next open makes a new one', async () => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope });
    await sandbox.close();
    await sandbox.close();
    await expect(sandbox.exec('true')).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' });
    await expect(sandbox.files.read('x')).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' });
    await expect(sandbox.info()).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' });
    expect(await manager.list({ scope })).toEqual([]);
    await expect(manager.get(sandbox.id)).rejects.toMatchObject({ code: 'SANDBOX_NOT_FOUND' });
    const next = await manager.open({ scope });
    expect(next).toMatchObject({ created: true });
    expect(next.id).not.toBe(sandbox.id);
  });

  test('a call under way when its sandbox is closed rejects with SANDBOX_CLOSED', async () => {
    const sandbox = await manager.open({ session: 'isolated' });
    const process = await sandbox.spawn('echo up; sleep 1000');
    await process.read({ waitMs: 5_000 });
    const waiting = expect(process.wait()).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' });
    await sandbox.close();
    await waiting;
  });

  test('another image for an open session is refused with what to do', async () => {
    const scope = { workflow: unique() };
    await manager.open({ scope });
    const other = manager.open({ scope, image: IMAGES.debian });
    await expect(other).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('close it first'),
    });
  });

  test('a new sandbox has the files, the environment and the init it was ordered with', async () => {
    const options = {
      session: 'seeded',
      files: { 'in/a.txt': 'A' },
      env: { TEAM: 'blue' },
      init: 'cp in/a.txt in/b.txt',
    };
    const sandbox = await manager.open(options);
    expect((await sandbox.exec('cat in/b.txt; echo $TEAM')).stdout).toBe('Ablue\n');
    await sandbox.files.remove('in', { recursive: true });
    expect(await (await manager.open(options)).files.exists('in/a.txt')).toBe(false);
    const failing = manager.open({ session: 'isolated', init: 'echo broken >&2; exit 9' });
    await expect(failing).rejects.toMatchObject({
      message: expect.stringContaining('broken'),
      details: { exitCode: 9 },
    });
  });

  test('info tells what the sandbox is, and labels come back', async () => {
    const limits = { memoryMb: 256, pids: 64, cpus: 0.5 };
    const sandbox = await manager.open({ session: 'labelled', labels: { team: 'blue' }, limits });
    expect(await sandbox.info()).toMatchObject({
      id: sandbox.id,
      key: sandbox.key,
      image,
      state: 'running',
      workdir: '/workspace',
      network: false,
      labels: { team: 'blue' },
      limits,
      createdAt: expect.any(Date),
      expiresAt: expect.any(Date),
    });
  });

  test('the sandbox is hardened: no network, few capabilities, no new privileges, limited processes', async () => {
    const sandbox = await manager.open({ session: 'hardened', limits: { pids: 32 } });
    const { stdout } = await sandbox.exec('ls /sys/class/net; grep -E "CapBnd|NoNewPrivs" /proc/self/status');
    expect(stdout).toMatch(/^lo\n/);
    expect(stdout).toMatch(/NoNewPrivs:\s+1/);
    expect(stdout).toMatch(/CapBnd:\s+00000000000404fb/);
    expect((await sandbox.exec('ls -la /var/run/docker.sock')).ok).toBe(false);
    const bomb = await sandbox.exec('bomb() { bomb | bomb & }; bomb & exec sleep 1000', { timeoutMs: 1_000 });
    expect(bomb.timedOut).toBe(true);
    expect((await sandbox.exec(['echo', 'alive'])).stdout).toBe('alive\n');
  });

  test('a read-only root leaves the workdir and /tmp writable', async () => {
    const sandbox = await manager.open({ session: 'readonly', readOnlyRoot: true });
    expect((await sandbox.exec('echo x > /etc/x')).ok).toBe(false);
    await expect(sandbox.files.write('/etc/x', 'x')).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    await sandbox.files.write('ok', '#!/bin/sh\necho ran', { mode: 0o755 });
    expect((await sandbox.exec('./ok; touch /tmp/ok && echo tmp')).stdout).toBe('ran\ntmp\n');
  });

  test('info() of the manager names the engine', async () => {
    expect(await manager.info()).toMatchObject({
      backend: isNamespaces ? 'namespaces' : 'docker',
      version: expect.any(String),
      ...(isNamespaces ? { tier: 'full' } : { limits: { memoryMb: 'enforced', pids: 'enforced', cpus: 'enforced' } }),
    });
  });

  // With an init that never ends: however late an abort comes, it is in time.
  const openForever = (scope: { workflow: string }, signal: AbortSignal) =>
    manager.open({ scope, init: 'sleep 1000', signal });

  test('an opening that is aborted once its sandbox is there closes it', async () => {
    const scope = { workflow: unique() };
    const events = record(manager);
    const controller = new AbortController();
    const reason = new Error('not now');
    const opening = expect(openForever(scope, controller.signal)).rejects.toBe(reason);
    await until(async () => (await manager.list({ scope })).length === 1);
    controller.abort(reason);
    await opening;
    await until(() => events.some(({ type, key }) => type === 'closed' && key?.includes(scope.workflow)));
    await until(async () => (await manager.list({ scope })).length === 0);
  });

  test.each([0, 1, 5, 20, 100])('an opening that is aborted after %i ms leaves no sandbox behind', async (ms) => {
    const scope = { workflow: unique() };
    const controller = new AbortController();
    const reason = new Error('not now');
    const opening = expect(openForever(scope, controller.signal)).rejects.toBe(reason);
    setTimeout(() => controller.abort(reason), ms);
    await opening;
    // The next open of a key waits for the one before it.
    const next = await manager.open({ scope });
    expect(next.created).toBe(true);
    expect((await manager.list({ scope })).map(({ id }) => id)).toEqual([next.id]);
    await next.close();
  });

  test('a closed manager closes what it made, leaves what it did not, and takes no more', async () => {
    const scope = { workflow: unique() };
    const owner = new SandboxManager({ defaults: { image } });
    const guest = new SandboxManager({ defaults: { image } });
    const sandbox = await owner.open({ scope });
    const visitor = await guest.open({ scope });
    expect(visitor.created).toBe(false);
    await guest.close();
    await expect(visitor.exec('true')).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' });
    expect((await sandbox.exec('echo here')).stdout).toBe('here\n');
    await owner[Symbol.asyncDispose]();
    await owner.close();
    await expect(owner.open({ scope })).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' });
    expect(await manager.list({ scope })).toEqual([]);
  });

  test.each([
    ['sandbox.close()', async (owner: SandboxManager, id: string) => (await owner.get(id)).close()],
    ['manager.close()', async (owner: SandboxManager) => owner.close()],
  ])('%s tells other programs that use the sandbox that it was closed', async (_, close) => {
    const scope = { workflow: unique() };
    const owner = new SandboxManager({ defaults: { image } });
    const { id } = await owner.open({ scope });
    const visitor = await testManager().get(id);
    const running = expect(visitor.exec('sleep 1000')).rejects.toMatchObject({
      code: 'SANDBOX_LOST',
      details: { reason: 'closed' },
    });
    await close(owner, id);
    await running;
    await owner.close();
  });

  test('an idle sandbox ends by itself', async () => {
    const idler = testManager({ defaults: { image } });
    const sandbox = await idler.open();
    const { id } = sandbox;
    await sandbox.extend({ idleTimeoutMs: 300 });
    const isThere = async () => (await manager.list()).some((info) => info.id === id);
    while (await isThere()) await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await idler.open()).toMatchObject({ created: true });
  });
});
