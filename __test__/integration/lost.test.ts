import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { type Box, ground } from '../ground';
import { describeOnDocker, describeWithEngine, IMAGES, testManager } from '../support';

const unique = () => `lost_${Date.now()}_${Math.random().toString(36).slice(2)}`;

describeWithEngine('a sandbox that goes away behind our back', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });

  test.each([
    ['killed', async (box: Box) => box.kill()],
    ['removed', async (box: Box) => box.remove()],
  ])('%s in the middle of calls: they reject with SANDBOX_LOST, and the next open makes a new one', async (_, end) => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope });
    const loop = await sandbox.spawn('while :; do echo tick; sleep 0.05; done');
    await loop.read({ waitMs: 5_000 });
    const stalled = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(new Uint8Array(10)) });
    const outcomes = Promise.allSettled([
      sandbox.exec('sleep 100'),
      sandbox.files.write('never finished', stalled),
      loop.wait(),
      (async () => {
        for await (const chunk of loop) expect(chunk.text).toContain('tick');
      })(),
    ]);
    await end(await ground.boxOf(sandbox.id));
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

// In a program of its own: what jest shows as the environment is a copy, which native code never sees.
const CUT = `
  const { SandboxManager } = require('cofferdam');
  (async () => {
    const owner = new SandboxManager({ defaults: { image: ${JSON.stringify(IMAGES.alpine)} } });
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
    while (!(await sandbox.files.exists('log'))) await new Promise((resolve) => setTimeout(resolve, 10));
    const kill = 'for p in /proc/[0-9]*; do tr "\\\\0" " " < $p/cmdline | grep -q "[g]uest link" && kill -9 $(basename $p) && echo cut; done; true';
    const cut = (await sandbox.exec(kill)).stdout;
    const outcome = { cut, stdout: (await running).stdout, lines: await lines, log: await sandbox.files.readText('log') };
    console.log(JSON.stringify(outcome));
    await visitor.close();
    await owner.close();
  })();
`;

describeOnDocker('a link through the engine that breaks while the sandbox lives', () => {
  test('is made again: a command goes on, is not started twice, and loses no output', async () => {
    const options = { cwd: path.resolve(__dirname, '../..'), env: { ...process.env, COFFERDAM_SHORTCUT: 'off' } };
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', CUT], options);
    expect(JSON.parse(stdout)).toEqual({
      // Only a link that goes through the engine has a process to kill.
      cut: 'cut\n',
      stdout: 'one\ntwo\n',
      lines: '1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n',
      log: 'started\n',
    });
  });
});
