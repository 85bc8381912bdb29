import { type Box, ground } from '../ground';
import { describeWithEngine, IMAGES, record, testManager, unique, until } from '../support';

const image = IMAGES.alpine;

describeWithEngine('events', () => {
  test('tell of a session from its opening to its end, in order', async () => {
    const manager = testManager({ defaults: { image } });
    const scope = { workflow: unique() };
    const events = record(manager);
    const sandbox = await manager.open({ scope });
    await manager.open({ scope });
    const { execId } = await sandbox.exec('exit 3');
    await until(() => events.some(({ type }) => type === 'exec-finished'));
    await sandbox.close();
    await until(() => events.some(({ type }) => type === 'closed'));
    expect(events).toMatchObject([
      { type: 'opened', sandboxId: sandbox.id, key: sandbox.key, image, at: expect.any(Date) },
      { type: 'resumed', sandboxId: sandbox.id },
      { type: 'exec-started', execId, command: 'exit 3' },
      { type: 'exec-finished', execId, exitCode: 3, timedOut: false, oomKilled: false },
      { type: 'closed', sandboxId: sandbox.id, reason: 'closed' },
    ]);
  });

  test('tell of commands that another program starts, also in a sandbox that was open before', async () => {
    const manager = testManager({ defaults: { image } });
    const sandbox = await manager.open({ scope: { workflow: unique() } });
    const events = record(manager);
    const other = await testManager().get(sandbox.id);
    await until(async () => {
      // Who begins to listen is heard by the guest a moment later.
      await other.exec('echo from afar');
      return events.some((event) => event.type === 'exec-started' && event.command === 'echo from afar');
    });
  });

  test('name the command that ran out of memory', async () => {
    const manager = testManager({ defaults: { image, limits: { memoryMb: 32 } } });
    const events = record(manager);
    const sandbox = await manager.open();
    const result = await sandbox.exec('exec tail /dev/zero');
    expect(result).toMatchObject({ oomKilled: true, exitCode: 137 });
    expect(await until(() => events.find(({ type }) => type === 'oom'))).toMatchObject({ execId: result.execId });
  });

  test.each([
    // An engine removes it before or after it has told of its end.
    ['removed', async (box: Box) => box.remove(), { reason: expect.stringMatching(/^(exited|removed)$/) }],
    ['stopped', async (box: Box) => box.stop(), { reason: 'stopped' }],
    ['killed', async (box: Box) => box.kill(), { reason: 'exited', exitCode: 137 }],
  ])('tell of a sandbox whose container was %s, without anybody having asked', async (_, end, details) => {
    const manager = testManager({ defaults: { image } });
    const events = record(manager);
    const sandbox = await manager.open();
    await end(await ground.boxOf(sandbox.id));
    const lost = await until(() => events.find((event) => event.type === 'lost'));
    expect(lost).toMatchObject({ sandboxId: sandbox.id, ...details });
    if (lost.reason === 'exited') expect(lost.exitCode).toBe(137);
    const call = sandbox.exec('true');
    await expect(call).rejects.toMatchObject({ code: 'SANDBOX_LOST', details: { ...details, reason: lost.reason } });
    expect(await manager.open()).toMatchObject({ created: true });
  });

  test('end with the manager, or when the caller has heard enough', async () => {
    const manager = testManager();
    const reason = new Error('enough');
    const controller = new AbortController();
    const listening = (async () => {
      for await (const event of manager.events({ signal: controller.signal })) throw new Error(event.type);
    })();
    setTimeout(() => controller.abort(reason), 20);
    await expect(listening).rejects.toBe(reason);
    const events = manager.events();
    const next = events.next();
    await manager.close();
    expect(await next).toEqual({ done: true, value: undefined });
  });
});
