import type { Sandbox } from 'cofferdam';
import { describeWithEngine, imagesOf, testManager, until } from '../support';

/** Two processes that do nothing but compute, for a moment: how many processors they had together. */
async function processors(sandbox: Sandbox): Promise<number> {
  const before = await sandbox.stats();
  const began = performance.now();
  await sandbox.exec('while :; do :; done & while :; do :; done', { timeoutMs: 1_500 });
  return ((await sandbox.stats()).cpuMs - before.cpuMs) / (performance.now() - began);
}

/** Whether there is room for so many processes. Not by bash, which tries again for seconds. */
async function hasRoomFor(count: number, sandbox: Sandbox): Promise<boolean> {
  const script = `for n in $(seq ${count}); do sleep 60 > /dev/null 2>&1 & done; echo all; kill $(jobs -p)`;
  return (await sandbox.exec(['sh', '-c', script])).stdout === 'all\n';
}

describeWithEngine.each(imagesOf('alpine', 'debian'))('limits on %s', (image) => {
  const manager = testManager({ defaults: { image } });

  test('apply from the start', async () => {
    const limits = { cpus: 0.5, memoryMb: 128, pids: 40, openFiles: 77, workspaceMb: 30 };
    const sandbox = await manager.open({ session: 'isolated', limits });
    expect((await sandbox.info()).limits).toEqual(limits);
    expect((await sandbox.exec('ulimit -n')).stdout).toBe('77\n');
    expect(await sandbox.exec('exec tail /dev/zero')).toMatchObject({ exitCode: 137, oomKilled: true });
    await expect(sandbox.files.write('large', Buffer.alloc(31 * 2 ** 20))).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
    });
    const kept = (await manager.info()).limits;
    if (kept.cpus === 'enforced') expect(await processors(sandbox)).toBeLessThan(0.8);
    expect(await hasRoomFor(20, sandbox)).toBe(true);
    expect(await hasRoomFor(60, sandbox)).toBe(false);
    await sandbox.close();
  });

  test('change while the sandbox runs', async () => {
    const sandbox = await manager.open({ session: 'isolated', limits: { memoryMb: 64, pids: 20 } });
    const hungry = 'head -c 100m /dev/zero | tail | wc -c';
    expect((await sandbox.exec(hungry)).stdout).toBe('0\n');
    expect((await sandbox.stats()).oomKills).toBeGreaterThan(0);
    expect(await hasRoomFor(40, sandbox)).toBe(false);
    await sandbox.setLimits({ memoryMb: 512, pids: 100, openFiles: 99, cpus: 1 });
    expect((await sandbox.info()).limits).toMatchObject({ memoryMb: 512, pids: 100, openFiles: 99, cpus: 1 });
    expect((await sandbox.exec(hungry)).stdout).toBe(`${100 * 2 ** 20}\n`);
    expect(await hasRoomFor(40, sandbox)).toBe(true);
    expect((await sandbox.exec('ulimit -n')).stdout).toBe('99\n');
    await sandbox.setLimits({ cpus: 0.25 });
    const kept = (await manager.info()).limits;
    if (kept.cpus === 'enforced') expect(await processors(sandbox)).toBeLessThan(0.5);
    await sandbox.close();
  });

  test('hold for a process whose name is no text', async () => {
    const sandbox = await manager.open({ session: 'isolated', limits: { memoryMb: 64 } });
    const hungry = `printf '\\377' > /proc/$$/comm; held=$(head -c 150m /dev/zero | tr '\\0' a); echo "\${#held}"`;
    expect(await sandbox.exec(hungry)).toMatchObject({ exitCode: 137, oomKilled: true, stdout: '' });
    await sandbox.close();
  });

  test('cannot be raised beyond the policy, nor set to nonsense', async () => {
    const strict = testManager({ defaults: { image }, policy: { maxLimits: { memoryMb: 256, workspaceMb: 50 } } });
    const sandbox = await strict.open();
    expect((await sandbox.info()).limits).toMatchObject({ memoryMb: 256, workspaceMb: 50 });
    await expect(sandbox.setLimits({ memoryMb: 257 })).rejects.toMatchObject({ code: 'POLICY_DENIED' });
    await expect(sandbox.setLimits({ workspaceMb: 51 })).rejects.toMatchObject({ code: 'POLICY_DENIED' });
    await expect(sandbox.setLimits({ pids: -1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(sandbox.setLimits({ cpus: Number.NaN })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('a command that fills the workspace is ended with LIMIT_EXCEEDED, and only that one', async () => {
    const sandbox = await manager.open({ session: 'isolated', limits: { workspaceMb: 16 } });
    const innocent = await sandbox.spawn('while :; do echo tick; sleep 0.05; done');
    const elsewhere = await sandbox.exec('head -c 40m /dev/zero > /tmp/elsewhere && echo fine');
    expect(elsewhere.stdout).toBe('fine\n');
    const filling = sandbox.exec('echo begin; while :; do head -c 1m /dev/zero >> big; sleep 0.01; done');
    await expect(filling).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      details: { limit: 'workspaceMb', stdout: 'begin\n' },
    });
    await expect(sandbox.files.write('more', 'x')).rejects.toMatchObject({
      code: 'LIMIT_EXCEEDED',
      message: expect.stringContaining('workspaceMb'),
    });
    // Still usable: what deletes is left alone, and then there is room again.
    expect((await sandbox.exec('ls; rm big; echo gone')).stdout).toBe('big\ngone\n');
    await sandbox.files.write('more', 'x'.repeat(1_000_000));
    const before = await innocent.read();
    expect(before.done).toBe(false);
    await until(async () => (await innocent.read()).chunks.length > before.chunks.length);
    await innocent.kill();
    await sandbox.close();
  });

  test('files written through the API count, to the last block', async () => {
    const sandbox = await manager.open({ session: 'isolated', limits: { workspaceMb: 8 } });
    await sandbox.files.write('first', Buffer.alloc(6 * 2 ** 20));
    const second = sandbox.files.write('second', Buffer.alloc(3 * 2 ** 20));
    await expect(second).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
    expect((await sandbox.files.list()).map(({ name }) => name)).toEqual(['first']);
    await sandbox.files.write('/tmp/outside', Buffer.alloc(20 * 2 ** 20));
    await sandbox.files.remove('first');
    await sandbox.files.write('second', Buffer.alloc(3 * 2 ** 20));
    await sandbox.setLimits({ workspaceMb: 40 });
    await sandbox.files.write('third', Buffer.alloc(30 * 2 ** 20));
    await sandbox.close();
  });

  test('on a read-only root the kernel itself keeps the workspace small', async () => {
    const sandbox = await manager.open({ session: 'isolated', readOnlyRoot: true, limits: { workspaceMb: 4 } });
    expect((await sandbox.exec('head -c 10m /dev/zero > big')).ok).toBe(false);
    expect((await sandbox.files.stat('big'))?.sizeBytes).toBeLessThanOrEqual(4 * 2 ** 20);
    await sandbox.close();
  });
});
