import { SandboxManager } from 'cofferdam';
import { describeWithEngine, IMAGES, program, record, testManager, unique, until } from '../support';

const image = IMAGES.alpine;

// Side by side: most of their time is waiting.
describeWithEngine('leases', () => {
  test.concurrent('an idle sandbox is warned of, ends, and says why; the next open makes a new one', async () => {
    const manager = testManager({ defaults: { image } });
    const events = record(manager);
    const sandbox = await manager.open();
    await sandbox.extend({ idleTimeoutMs: 3_000 });
    const closed = await until(() => events.find(({ type }) => type === 'closed'));
    expect(closed).toMatchObject({ sandboxId: sandbox.id, key: sandbox.key, reason: 'idle' });
    expect(events.find(({ type }) => type === 'expiring')).toMatchObject({
      sandboxId: sandbox.id,
      reason: 'idle',
      expiresAt: expect.any(Date),
    });
    await expect(sandbox.exec('true')).rejects.toMatchObject({ code: 'SANDBOX_LOST', details: { reason: 'idle' } });
    expect(await manager.open()).toMatchObject({ created: true });
  });

  test.concurrent('output of a running process is activity, and so is a request under way', async () => {
    const manager = testManager({ defaults: { image } });
    const sandbox = await manager.open();
    const printing = await sandbox.spawn('while :; do echo x; sleep 0.2; done');
    await sandbox.extend({ idleTimeoutMs: 1_500 });
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await printing.kill();
    expect((await sandbox.exec('sleep 3; echo still')).stdout).toBe('still\n');
  });

  test.concurrent('looking at a sandbox is not using it', async () => {
    const manager = testManager({ defaults: { image } });
    const sandbox = await manager.open();
    await sandbox.extend({ idleTimeoutMs: 500 });
    await until(() =>
      sandbox.info().then(
        () => false,
        (error) => error.code === 'SANDBOX_LOST',
      ),
    );
  });

  test.concurrent('a sandbox reaches its maximum lifetime however busy it is', async () => {
    const manager = testManager({ defaults: { image } });
    const sandbox = await manager.open();
    await sandbox.extend({ maxLifetimeMs: 1_200 });
    const running = sandbox.exec('while :; do echo busy; sleep 0.1; done');
    await expect(running).rejects.toMatchObject({ code: 'SANDBOX_LOST', details: { reason: 'max-lifetime' } });
  });

  test.concurrent('extend() puts both ends off, counted from now', async () => {
    const manager = testManager({ idleTimeoutMs: 4_000, maxLifetimeMs: 4_000, defaults: { image } });
    const sandbox = await manager.open();
    const before = await sandbox.info();
    await sandbox.extend({ idleTimeoutMs: 60_000, maxLifetimeMs: 120_000 });
    const { expiresAt } = await sandbox.info();
    expect(expiresAt?.getTime()).toBeGreaterThan((before.expiresAt?.getTime() ?? 0) + 50_000);
    expect(expiresAt?.getTime()).toBeLessThanOrEqual(Date.now() + 60_000);
    await new Promise((resolve) => setTimeout(resolve, 4_500));
    expect((await sandbox.exec('echo here')).stdout).toBe('here\n');
    await sandbox.extend({ idleTimeoutMs: 0, maxLifetimeMs: 0 });
    expect((await sandbox.info()).expiresAt).toBeNull();
    await expect(sandbox.extend({ idleTimeoutMs: -1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test.concurrent('a sandbox that another program still uses is no orphan; without anybody it ends', async () => {
    const orphanTimeoutMs = 2_000;
    const owner = program(`
      const manager = new SandboxManager({ orphanTimeoutMs: ${orphanTimeoutMs}, defaults: { image: ${JSON.stringify(image)} } });
      console.log((await manager.open({ scope: { workflow: '${unique()}' } })).id);
      setInterval(() => {}, 1000);
    `);
    const id = await owner.line();
    const watcher = testManager();
    const isThere = async () => (await watcher.list()).some((info) => info.id === id);
    const user = testManager();
    const sandbox = await user.get(id);
    owner.child.kill('SIGKILL');
    await owner.ended;
    await new Promise((resolve) => setTimeout(resolve, orphanTimeoutMs + 500));
    expect((await sandbox.exec('echo used')).stdout).toBe('used\n');
    // It only lets go: the end comes with the timeout.
    await user.close();
    expect(await isThere()).toBe(true);
    await until(async () => !(await isThere()));
  });

  test.concurrent("a sandbox from the warm pool outlives its host by its session's orphan timeout, not the pool's", async () => {
    const owner = program(`
      const image = ${JSON.stringify(image)};
      const manager = new SandboxManager({ warm: { [image]: 1 }, orphanTimeoutMs: 60_000, defaults: { image } });
      for await (const event of manager.events()) if (event.type === 'warming' && event.ready === 1) break;
      const before = await manager.list({ state: 'warm' });
      const { id } = await manager.open({ scope: { workflow: '${unique()}' } });
      if (!before.some((info) => info.id === id)) throw new Error('it was not taken from the pool');
      console.log(id);
      setInterval(() => {}, 1000);
    `);
    const id = await owner.line();
    const watcher = testManager();
    owner.child.kill('SIGKILL');
    await owner.ended;
    // A pool's sandbox ends 10 s after its host, and on namespaces its keeper ends it 5 s later at the latest.
    await new Promise((resolve) => setTimeout(resolve, 16_000));
    const orphan = await watcher.get(id);
    expect((await orphan.exec('echo here')).stdout).toBe('here\n');
    await orphan.close();
  });
});

describe('the environment', () => {
  const saved = { ...process.env };
  afterEach(() => {
    process.env = { ...saved };
  });

  test.each(['30 minutes', 'soon', '-5m', '1e3s'])('a time of %p is refused by the name of its variable', (value) => {
    process.env.COFFERDAM_IDLE_TIMEOUT = value;
    expect(() => new SandboxManager()).toThrow(/COFFERDAM_IDLE_TIMEOUT must be a time such as/);
  });

  (process.env.COFFERDAM_NO_ENGINE ? test.skip : test)(
    'gives the times that the program does not give itself',
    async () => {
      process.env.COFFERDAM_IDLE_TIMEOUT = 'never';
      process.env.COFFERDAM_MAX_LIFETIME = '90m';
      await using manager = new SandboxManager({ defaults: { image } });
      const { expiresAt } = await (await manager.open()).info();
      const minutes = ((expiresAt?.getTime() ?? 0) - Date.now()) / 60_000;
      expect(Math.round(minutes)).toBe(90);
      process.env.COFFERDAM_MAX_LIFETIME = '1s';
      await using told = new SandboxManager({ defaults: { image }, maxLifetimeMs: 600_000 });
      const later = (await (await told.open()).info()).expiresAt;
      expect(Math.round(((later?.getTime() ?? 0) - Date.now()) / 60_000)).toBe(10);
    },
  );
});
