import { SandboxManager } from 'cofferdam';
import Docker from 'dockerode';
import { describeWithEngine, IMAGES, testManager } from '../support';

const unique = () => `lost_${Date.now()}_${Math.random().toString(36).slice(2)}`;

describeWithEngine('a sandbox that goes away behind our back', () => {
  const docker = new Docker();
  const manager = testManager({ defaults: { image: IMAGES.alpine } });

  async function containerOf(id: string) {
    const [found] = await docker.listContainers({ filters: { label: [`cofferdam.id=${id}`] } });
    return docker.getContainer(found?.Id ?? 'none');
  }

  test.each([
    ['killed', async (container: Docker.Container) => container.kill()],
    ['removed', async (container: Docker.Container) => container.remove({ force: true })],
  ])('%s in the middle of calls: they reject with SANDBOX_LOST, and the next open makes a new one', async (_, end) => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope });
    const loop = await sandbox.spawn('while :; do echo tick; sleep 0.05; done');
    await loop.read({ waitMs: 5_000 });
    const outcomes = Promise.allSettled([
      sandbox.exec('sleep 100'),
      loop.wait(),
      (async () => {
        for await (const chunk of loop) expect(chunk.text).toContain('tick');
      })(),
    ]);
    await end(await containerOf(sandbox.id));
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'SandboxError', code: 'SANDBOX_LOST' } });
    }
    await expect(sandbox.exec('true')).rejects.toMatchObject({
      code: 'SANDBOX_LOST',
      details: { reason: expect.any(String) },
    });
    await expect(sandbox.files.list()).rejects.toMatchObject({ code: 'SANDBOX_LOST' });
    const next = await manager.open({ scope });
    expect(next.created).toBe(true);
    expect((await next.exec('echo new')).stdout).toBe('new\n');
  });
});

describeWithEngine('a link that breaks while the sandbox lives', () => {
  const before = process.env.COFFERDAM_SHORTCUT;
  beforeAll(() => {
    // Through the engine, where a link is a process in the sandbox that can be killed.
    process.env.COFFERDAM_SHORTCUT = 'off';
  });
  afterAll(() => {
    if (before === undefined) delete process.env.COFFERDAM_SHORTCUT;
    else process.env.COFFERDAM_SHORTCUT = before;
  });

  test('is made again: a command goes on, is not started twice, and loses no output', async () => {
    const owner = testManager({ defaults: { image: IMAGES.alpine } });
    const sandbox = await owner.open();
    const visitor = new SandboxManager();
    const visited = await visitor.get(sandbox.id);
    const running = visited.exec('echo started >> log; echo one; sleep 1; echo two');
    const loop = await visited.spawn('for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.1; done');
    const lines = (async () => {
      let text = '';
      for await (const chunk of loop) text += chunk.text;
      return text;
    })();
    const kill =
      'for p in /proc/[0-9]*; do tr "\\0" " " < $p/cmdline | grep -q "guest link" && kill -9 $(basename $p); done; true';
    while (!(await sandbox.files.exists('log'))) await new Promise((resolve) => setTimeout(resolve, 10));
    await sandbox.exec(kill);
    expect(await running).toMatchObject({ ok: true, stdout: 'one\ntwo\n' });
    expect(await lines).toBe('1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n');
    expect(await sandbox.files.readText('log')).toBe('started\n');
    await visitor.close();
  });

  test('everything works through the engine as it does past it', async () => {
    const sandbox = await testManager({ defaults: { image: IMAGES.alpine } }).open();
    const data = Buffer.alloc(3_000_000, 'abcdefg');
    await sandbox.files.write('big', data);
    expect(data.equals((await sandbox.files.read('big', { maxBytes: 10_000_000 })).bytes)).toBe(true);
    const results = await Promise.all(Array.from({ length: 50 }, (_, index) => sandbox.exec(['echo', `${index}`])));
    expect(results.map(({ stdout }) => stdout)).toEqual(results.map((_, index) => `${index}\n`));
  });
});
