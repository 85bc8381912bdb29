import type { Sandbox, SandboxManager } from 'cofferdam';
import { describeWithEngine, IMAGES, testManager, until } from '../support';
import { sturdySandbox } from './failure';

const REASON = new Error('changed my mind');

/** How many processes of this name are left. */
async function left(sandbox: Sandbox, name: string): Promise<number> {
  const { stdout } = await sandbox.exec(`ps -o args | grep -c '[${name[0]}]${name.slice(1)}'; true`);
  return Number(stdout);
}

describeWithEngine('a signal that is aborted already', () => {
  const manager = testManager();
  const sandbox = sturdySandbox(manager, { image: IMAGES.alpine });

  type Call = (sandbox: Sandbox, signal: AbortSignal, manager: SandboxManager) => Promise<unknown>;
  const CALLS: [string, Call][] = [
    ['open', (_, signal, manager) => manager.open({ image: IMAGES.alpine, session: 'never', signal })],
    ['pull', (_, signal, manager) => manager.pull(IMAGES.alpine, { signal }).next()],
    ['exec', (sandbox, signal) => sandbox.exec('touch ran', { signal })],
    ['exec with callbacks', (sandbox, signal) => sandbox.exec('touch ran', { signal, onStdout() {} })],
    ['spawn', (sandbox, signal) => sandbox.spawn('touch ran', { signal })],
    ['wait', async (sandbox, signal) => (await sandbox.spawn('true')).wait({ signal })],
    ['write', ({ files }, signal) => files.write('ran', 'x', { signal })],
    ['write of a stream', ({ files }, signal) => files.write('ran', new Blob(['x']).stream(), { signal })],
    ['read', ({ files }, signal) => files.read('/etc/passwd', { signal })],
    ['readText', ({ files }, signal) => files.readText('/etc/passwd', { signal })],
    ['stream', ({ files }, signal) => files.stream('/etc/passwd', { signal }).getReader().read()],
  ];

  test.each(CALLS)('rejects %s with its reason, and nothing is done', async (_, call) => {
    await expect(call(sandbox(), AbortSignal.abort(REASON), manager)).rejects.toBe(REASON);
    await expect(call(sandbox(), AbortSignal.abort('a word'), manager)).rejects.toBe('a word');
    await expect(call(sandbox(), AbortSignal.abort(), manager)).rejects.toMatchObject({ name: 'AbortError' });
    expect(await sandbox().files.exists('ran')).toBe(false);
    expect((await manager.list()).filter(({ key }) => key.endsWith(':never'))).toEqual([]);
  });
});

describeWithEngine('a call that is aborted under way', () => {
  const manager = testManager();
  const sandbox = sturdySandbox(manager, { image: IMAGES.alpine });

  test('exec rejects with the reason when nothing of the command is left', async () => {
    const aborter = new AbortController();
    const running = sandbox().exec('touch begun; sleep 1111 & (setsid sleep 1111 &); sleep 1111', {
      signal: aborter.signal,
    });
    await sandbox().exec('until [ -e begun ]; do sleep 0.01; done; rm begun');
    aborter.abort(REASON);
    await expect(running).rejects.toBe(REASON);
    expect(await left(sandbox(), 'sleep 1111')).toBe(0);
  });

  // However early or late in its start a command is aborted, it must not go on unseen.
  test.each([
    ['exec', (signal: AbortSignal) => sandbox().exec(['sleep', '2222'], { signal, killGraceMs: 100 })],
    [
      'exec with callbacks',
      (signal: AbortSignal) => sandbox().exec(['sleep', '2222'], { signal, killGraceMs: 100, onStdout() {} }),
    ],
    [
      'spawn',
      async (signal: AbortSignal) => {
        const process = await sandbox().spawn(['sleep', '2222'], { signal, killGraceMs: 100 });
        await process.wait();
        signal.throwIfAborted();
      },
    ],
  ])(
    'a hundred times %s aborted at its start leave nothing behind',
    async (_, start) => {
      const calls = Array.from({ length: 100 }, async (_, index) => {
        const aborter = new AbortController();
        const call = start(aborter.signal);
        setTimeout(() => aborter.abort(REASON), index / 20);
        return call;
      });
      const outcomes = await Promise.allSettled(calls);
      expect(outcomes.filter((outcome) => outcome.status === 'fulfilled' || outcome.reason !== REASON)).toEqual([]);
      expect(await left(sandbox(), 'sleep 2222')).toBe(0);
    },
    30_000,
  );

  test('open rejects with the reason, and no sandbox is left', async () => {
    const scope = { workflow: `aborted-open-${process.pid}` };
    const aborter = new AbortController();
    const opening = manager.open({ scope, image: IMAGES.alpine, init: 'sleep 1000', signal: aborter.signal });
    setTimeout(() => aborter.abort(REASON), 50);
    await expect(opening).rejects.toBe(REASON);
    // The next open of the key waits for the first to be undone.
    const sandbox = await manager.open({ scope, image: IMAGES.alpine });
    expect(sandbox.created).toBe(true);
    expect(await manager.list({ scope })).toHaveLength(1);
    await sandbox.close();
  });

  test('wait rejects with the reason, and the process lives', async () => {
    const process = await sandbox().spawn('sleep 1000');
    const aborter = new AbortController();
    const waiting = process.wait({ signal: aborter.signal });
    aborter.abort(REASON);
    await expect(waiting).rejects.toBe(REASON);
    expect(await process.read()).toMatchObject({ done: false });
    await process.kill();
  });

  test('a write whose source has stalled rejects with the reason, and leaves no file', async () => {
    const aborter = new AbortController();
    const stalled = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from('half')),
      pull: () => new Promise(() => {}),
    });
    const writing = sandbox().files.write('stalled', stalled, { signal: aborter.signal });
    setTimeout(() => aborter.abort(REASON), 50);
    await expect(writing).rejects.toBe(REASON);
    await until(async () => (await sandbox().files.list()).length === 0);
  }, 10_000);

  test('a large write rejects with the reason, and leaves no file', async () => {
    const aborter = new AbortController();
    const writing = sandbox().files.write('large', Buffer.alloc(200 << 20), { signal: aborter.signal });
    setTimeout(() => aborter.abort(REASON), 5);
    await expect(writing).rejects.toBe(REASON);
    // The guest hears of it after we do, and may be in the middle of a block.
    await until(async () => (await sandbox().files.list()).length === 0);
  });

  test('a stream that is left early, aborted or cancelled holds nothing up', async () => {
    await sandbox().exec('head -c 50000000 /dev/zero > big');
    const aborter = new AbortController();
    const reader = sandbox().files.stream('big', { signal: aborter.signal }).getReader();
    expect((await reader.read()).done).toBe(false);
    aborter.abort(REASON);
    await expect(
      (async () => {
        for (;;) await reader.read();
      })(),
    ).rejects.toBe(REASON);
    await sandbox().files.stream('big').cancel();
    for await (const _ of sandbox().files.stream('big')) break;
    expect((await sandbox().exec('rm big; echo done')).stdout).toBe('done\n');
  });
});
