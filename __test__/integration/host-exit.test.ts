import { describeWithEngine, IMAGES, program, testManager, unique, until } from '../support';

const image = JSON.stringify(IMAGES.alpine);
/** Long enough for the next program to come in time, on a loaded machine too. */
const ORPHAN_MS = 4_000;

/** Opens one session with a scope and one without, then ends in its own way. */
function host(scope: string, end: string, orphanMs = ORPHAN_MS) {
  return program(`
    const manager = new SandboxManager({ orphanTimeoutMs: ${orphanMs}, defaults: { image: ${image} } });
    const shared = await manager.open({ scope: { workflow: ${JSON.stringify(scope)} } });
    const own = await manager.open();
    await shared.files.write('note', 'from before');
    await shared.spawn('i=0; while :; do echo $i; i=$((i+1)); sleep 0.05; done', { detached: true });
    console.log(JSON.stringify([shared.id, own.id]));
    ${end}
  `);
}

describeWithEngine('a host program that ends', () => {
  const manager = testManager();
  const ids = async () => (await manager.list()).map(({ id }) => id);
  const isGone = (id: string) => until(async () => !(await ids()).includes(id));

  test.each([
    ['by manager.close()', 'await manager.close();', 0],
    ['by the end of await using', 'await manager[Symbol.asyncDispose]();', 0],
  ])('%s leaves nothing', async (_, end, code) => {
    const running = host(unique(), end);
    expect(await running.ended).toMatchObject({ code });
    const [shared, own] = JSON.parse(await running.line());
    const left = await ids();
    expect(left).not.toContain(shared);
    expect(left).not.toContain(own);
  });

  test.each([
    ['by process.exit()', 'process.exit(3);', { code: 3 }],
    ['by an exception that nobody caught', "setTimeout(() => { throw new Error('uncaught') });", { code: 1 }],
    ['because nothing is left to do', '', { code: 0 }],
  ])('%s: what nobody can find again goes at once, a session stays for its orphan timeout', async (_, end, status) => {
    const workflow = unique();
    const running = host(workflow, end, 120_000);
    expect(await running.ended).toMatchObject(status);
    const [shared, own] = JSON.parse(await running.line());
    // The guest is gone before the program is; the engine takes a moment to remove the container.
    await isGone(own);
    const again = await manager.open({ scope: { workflow }, image: IMAGES.alpine });
    expect(again).toMatchObject({ id: shared, created: false });
    expect(await again.files.readText('note')).toBe('from before');
    await again.close();
  });

  // Side by side: each waits for an orphan's timeout.
  test.concurrent.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)(
    'by %s dies of it, and a program that comes in time finds its session, its processes and their output',
    async (signal) => {
      const workflow = unique();
      const running = host(workflow, 'setInterval(() => {}, 1000);');
      const [shared, own] = JSON.parse(await running.line());
      running.child.kill(signal);
      expect(await running.ended).toMatchObject({ code: null, signal });
      const again = await manager.open({ scope: { workflow }, image: IMAGES.alpine });
      expect(again).toMatchObject({ id: shared, created: false });
      const [info] = await again.processes();
      const process = await again.process(info?.execId ?? '');
      const first = await process.read();
      expect(first.chunks[0]?.text).toMatch(/^0\n/);
      const more = await process.read({ sinceSeq: first.chunks.at(-1)?.seq, waitMs: 5_000 });
      expect(more.chunks[0]?.seq).toBe((first.chunks.at(-1)?.seq ?? 0) + 1);
      await isGone(own);
      await again.close();
    },
  );

  // However far the engine has come with it.
  test.each(
    ['open({', "run({ runtime: 'bash', code: 'sleep 100',"].flatMap((call) =>
      [0, 30, 90, 150, 210].map((delay) => [call, delay] as const),
    ),
  )('that aborts %s after %d ms and closes its manager leaves nothing', async (call, delay) => {
    const mark = unique();
    const running = program(`
      const labels = { mark: ${JSON.stringify(mark)} };
      const manager = new SandboxManager({ orphanTimeoutMs: 60_000, defaults: { image: ${image}, labels } });
      await manager.info();
      const aborter = new AbortController();
      setTimeout(() => aborter.abort(), ${delay});
      await manager.${call} image: ${image}, signal: aborter.signal }).catch(() => {});
      await manager.close();
      process.exit(0);
    `);
    expect(await running.ended).toMatchObject({ code: 0 });
    expect((await manager.list()).filter(({ labels }) => labels.mark === mark)).toEqual([]);
  });

  test('that sleeps with its machine finds its sandbox as it was: frozen for longer than the orphan timeout', async () => {
    const running = program(`
      const manager = new SandboxManager({ orphanTimeoutMs: 500, defaults: { image: ${image} } });
      const sandbox = await manager.open();
      const awake = setInterval(() => {}, 1000);
      const woken = new Promise((resolve) => process.once('SIGUSR2', resolve));
      console.log('ready');
      await woken;
      clearInterval(awake);
      console.log((await sandbox.exec('echo awake')).stdout);
      await manager.close();
    `);
    await running.line();
    // Stopping the program is the harder half of a suspend: its clock stands still and the guest's does not.
    running.child.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    running.child.kill('SIGCONT');
    running.child.kill('SIGUSR2');
    const { output } = await running.ended;
    expect(output).toContain('awake');
  });

  test('keeps its own way of handling signals', async () => {
    const running = program(`
      process.on('SIGTERM', () => { console.log('mine ' + process.listenerCount('SIGTERM')); process.exit(7); });
      const manager = new SandboxManager({ defaults: { image: ${image} } });
      await manager.open();
      for (const signal of ['SIGINT', 'SIGHUP', 'SIGUSR2']) if (process.listenerCount(signal)) console.log(signal);
      process.kill(process.pid, 'SIGTERM');
      setInterval(() => {}, 1000);
    `);
    expect(await running.ended).toEqual({ code: 7, signal: null, output: 'mine 1\n' });
  });
});
