import { describeWithEngine, imagesOf, testManager, until } from '../support';

describeWithEngine.each(imagesOf('debian', 'alpine'))('stats on %s', (image) => {
  const manager = testManager({ defaults: { image } });

  test('tell what the sandbox uses', async () => {
    const sandbox = await manager.open();
    const before = await sandbox.stats();
    await sandbox.exec('i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; head -c 3m /dev/zero > three');
    const sleeper = await sandbox.spawn('sleep 1000');
    const after = await until(async () => {
      const stats = await sandbox.stats();
      return stats.workspaceBytes >= 3 * 2 ** 20 && stats;
    });
    expect(after.cpuMs).toBeGreaterThan(before.cpuMs);
    expect(after.pids).toBeGreaterThan(before.pids);
    expect(after.memoryBytes).toBeGreaterThan(0);
    expect(after.memoryPeakBytes).toBeGreaterThanOrEqual(after.memoryBytes);
    expect(after.workspaceBytes).toBeLessThan(4 * 2 ** 20);
    expect(after.oomKills).toBe(0);
    await sleeper.kill();
  });

  test('count kills for memory', async () => {
    const sandbox = await manager.open({ session: 'isolated', limits: { memoryMb: 32 } });
    expect(await sandbox.exec('exec tail /dev/zero')).toMatchObject({ oomKilled: true });
    expect((await sandbox.stats()).oomKills).toBe(1);
    await sandbox.close();
    await expect(sandbox.stats()).rejects.toMatchObject({ code: 'SANDBOX_CLOSED' });
  });
});
