import { SandboxManager } from 'cofferdam';
import { describeWithOwnEngine, OwnEngine } from '../own-engine';
import { IMAGES, program, record, until } from '../support';

const image = IMAGES.alpine;

describeWithOwnEngine('an engine that is killed and started again', () => {
  let engine: OwnEngine;

  beforeAll(async () => {
    engine = await OwnEngine.start(image);
  });

  afterAll(() => engine?.[Symbol.asyncDispose]());

  const isLostOrAway = { name: 'SandboxError', code: expect.stringMatching(/SANDBOX_LOST|ENGINE_UNAVAILABLE/) };

  test('in the middle of a call: it rejects or goes on, nothing hangs, and open() works again', async () => {
    const manager = new SandboxManager({ docker: { host: engine.host }, defaults: { image } });
    const events = record(manager);
    const scope = { workflow: 'restart' };
    const sandbox = await manager.open({ scope });
    const running = sandbox.exec('echo up; sleep 2; echo down').catch((error) => error);

    await engine.kill();
    const orphaned = await sandbox.exec('echo now').catch((error) => error);
    if (orphaned instanceof Error) expect(orphaned).toMatchObject(isLostOrAway);
    else expect(orphaned.stdout).toBe('now\n');
    const outcome = await running;
    if (outcome instanceof Error) expect(outcome).toMatchObject(isLostOrAway);
    else expect(outcome.stdout).toBe('up\ndown\n');

    await engine.start();
    const lost = await until(() => events.find(({ type }) => type === 'lost'));
    expect(lost).toMatchObject({ sandboxId: sandbox.id, reason: 'engine-restarted' });
    await expect(sandbox.exec('true')).rejects.toMatchObject({
      code: 'SANDBOX_LOST',
      details: { reason: 'engine-restarted' },
    });
    const again = await manager.open({ scope });
    expect(again.created).toBe(true);
    expect((await again.exec('echo again')).stdout).toBe('again\n');
    await manager.close();
    const left = await engine.containers();
    expect(left.map(({ Names }) => Names)).toEqual([]);
  });

  test('between two uses of a persistent workspace: it is the same', async () => {
    const manager = new SandboxManager({ docker: { host: engine.host }, defaults: { image } });
    const request = { scope: { workflow: 'restart' }, session: 'kept', persist: true };
    const sandbox = await manager.open(request);
    await sandbox.files.write('notes', 'kept');
    await sandbox.stop();
    await engine.kill();
    await engine.start();
    const again = await manager.open(request);
    expect(again.id).toBe(sandbox.id);
    expect(await again.files.readText('notes')).toBe('kept');
    await again.close({ keepData: false });
    await manager.close();
  });

  test('in the middle of many programs at work: nothing is left but what was asked to persist', async () => {
    const host = JSON.stringify(engine.host);
    const programs = Array.from({ length: 6 }, (_, index) =>
      program(`
        const manager = new SandboxManager({ docker: { host: ${host} }, orphanTimeoutMs: 1000, defaults: { image: '${image}' } });
        let isUp = false;
        for (let round = 0; ; round++) {
          try {
            const persist = ${index} === 0;
            const sandbox = await manager.open({ scope: { workflow: 'busy-${index}' }, session: persist ? 'kept' : 'round-' + round % 3, persist });
            if (!isUp) console.log('up');
            isUp = true;
            await sandbox.spawn('while :; do echo x; done', { detached: true });
            await Promise.all([sandbox.exec('sleep 0.05'), sandbox.files.write('file', 'x'.repeat(100_000))]);
            if (round % 2) await sandbox.close();
          } catch { await new Promise((resolve) => setTimeout(resolve, 50)); }
        }
      `),
    );
    await Promise.all(programs.map((each) => each.line()));
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await engine.kill();
    for (const { child } of programs) child.kill('SIGKILL');
    await Promise.all(programs.map(({ ended }) => ended));
    await engine.start();

    const docker = engine.client;
    const manager = new SandboxManager({ docker: { host: engine.host } });
    // What was half made when everything died is found by the next program that comes along.
    await until(async () => {
      await manager.prune();
      return (await engine.containers()).length === 0;
    });
    const { Volumes } = await docker.listVolumes();
    const names = (Volumes ?? []).map(({ Name }) => Name).filter((name) => !name.startsWith('cofferdam-guest-'));
    expect(names).toHaveLength(1);
    expect(await manager.list()).toMatchObject([{ key: 'workflow:busy-0:kept', state: 'stopped' }]);
    expect((await docker.listNetworks()).map(({ Name }) => Name).sort()).toEqual(['host', 'none']);
    const [kept] = await manager.list();
    await (await manager.get(kept?.id ?? '')).close({ keepData: false });
    expect(await manager.list()).toEqual([]);
    await manager.close();
  });
});
