import { SandboxManager } from 'cofferdam';
import { ground } from '../ground';
import { describeWithEngine, IMAGES, testManager, unique } from '../support';

const image = IMAGES.alpine;
const volumes = ground.workspaces;

describeWithEngine('persistent workspaces', () => {
  const manager = testManager({ defaults: { image, persist: true } });

  test('outlive close(), and are found by the next open, also with another image and by another program', async () => {
    const scope = { workflow: unique() };
    const first = await manager.open({ scope });
    await first.files.write('src/main.c', 'int main;');
    await first.close();
    expect(await volumes(first.key)).toHaveLength(1);
    const other = testManager();
    const second = await other.open({ scope, persist: true, image: IMAGES.debian });
    expect(second).toMatchObject({ created: true, id: first.id, image: IMAGES.debian });
    expect(await second.files.readText('src/main.c')).toBe('int main;');
    await second.close({ keepData: false });
    expect(await volumes(first.key)).toEqual([]);
    const third = await manager.open({ scope });
    expect(await third.files.exists('src')).toBe(false);
    await third.close({ keepData: false });
  });

  test('stop() ends what runs and keeps the files; start() brings them back under the same id', async () => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope, user: '1000', env: { TEAM: 'blue' } });
    await sandbox.exec('echo $TEAM > team; sleep 1000 &');
    await sandbox.stop();
    await sandbox.stop();
    await expect(sandbox.exec('true')).rejects.toMatchObject({
      code: 'SANDBOX_CLOSED',
      details: { state: 'stopped' },
      message: expect.stringContaining('start()'),
    });
    expect(await sandbox.info()).toMatchObject({ id: sandbox.id, key: sandbox.key, state: 'stopped', expiresAt: null });
    expect(await manager.list({ scope, state: 'stopped' })).toMatchObject([{ id: sandbox.id, key: sandbox.key }]);
    await sandbox.start();
    await sandbox.start();
    expect((await sandbox.exec('cat team; echo $TEAM; id -u')).stdout).toBe('blue\nblue\n1000\n');
    expect((await sandbox.info()).state).toBe('running');
    await sandbox.close({ keepData: false });
    expect(await manager.list({ scope })).toEqual([]);
    expect(await volumes(sandbox.key)).toEqual([]);
  });

  test('a stopped sandbox can be got, started and thrown away by another program', async () => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope, env: { TEAM: 'red' } });
    await sandbox.files.write('note', 'kept');
    await sandbox.stop();
    await using other = new SandboxManager();
    const got = await other.get(sandbox.id);
    expect(got).toMatchObject({ id: sandbox.id, key: sandbox.key, image, created: false });
    await got.start();
    expect((await got.exec('cat note; echo $TEAM')).stdout).toBe('keptred\n');
    // The one that stopped it comes back to the very same.
    await sandbox.start();
    expect((await sandbox.exec('cat note')).stdout).toBe('kept');
    await got.close({ keepData: false });
    expect(await volumes(sandbox.key)).toEqual([]);
    await expect(sandbox.exec('true')).rejects.toMatchObject({ code: 'SANDBOX_LOST' });
    await expect(other.get(sandbox.id)).rejects.toMatchObject({ code: 'SANDBOX_NOT_FOUND' });
  });

  test('two programs that open at once share one workspace and one sandbox', async () => {
    const scope = { workflow: unique() };
    const others = [testManager(), testManager(), testManager()];
    const opened = await Promise.all(others.map((each) => each.open({ scope, image, persist: true })));
    expect(new Set(opened.map(({ id }) => id)).size).toBe(1);
    expect(opened.filter(({ created }) => created)).toHaveLength(1);
    await opened[0]?.close({ keepData: false });
    expect(await volumes(opened[0]?.key ?? '')).toEqual([]);
  });

  test('prune() removes unused ones only when asked, and never one in use', async () => {
    const scope = { workflow: unique() };
    const [kept, used] = await Promise.all([
      manager.open({ scope, session: 'kept' }),
      manager.open({ scope, session: 'used' }),
    ]);
    await kept.close();
    const [name] = await volumes(kept.key);
    expect((await manager.prune()).volumes).not.toContain(name);
    expect((await manager.prune({ volumes: true, olderThanMs: 3_600_000 })).volumes).not.toContain(name);
    expect((await manager.prune({ volumes: true, dryRun: true })).volumes).toContain(name);
    expect(await volumes(kept.key)).toHaveLength(1);
    // Other suites' workspaces are theirs: this one goes by its own door.
    await (await manager.get(kept.id)).close({ keepData: false });
    expect(await volumes(kept.key)).toEqual([]);
    expect((await used.exec('echo used')).stdout).toBe('used\n');
    await used.close({ keepData: false });
  });

  test('what does not persist can be neither stopped nor kept, and says so', async () => {
    const sandbox = await manager.open({ persist: false });
    await expect(sandbox.stop()).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('persist: true'),
    });
    await expect(sandbox.close({ keepData: true })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect((await sandbox.exec('echo on')).stdout).toBe('on\n');
    await sandbox.close();
  });
});
