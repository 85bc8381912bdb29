import { ground } from '../ground';
import { describeWithEngine, IMAGES, program, testManager, unique } from '../support';

describeWithEngine('many opens at once', () => {
  test('200 of one key over four programs make one container', async () => {
    const run = unique('one');
    const programs = Array.from({ length: 4 }, () =>
      program(`
        const manager = new SandboxManager({ defaults: { image: '${IMAGES.alpine}', labels: { run: '${run}' } } });
        await manager.info();
        setInterval(() => {}, 1000);
        const told = new Promise((resolve) => process.once('SIGUSR2', resolve));
        console.log('ready');
        await told;
        const opened = await Promise.all(Array.from({ length: 50 }, () => manager.open({ scope: { workflow: '${run}' } })));
        const created = opened.filter((sandbox) => sandbox.created).length;
        const { stdout } = await opened[49].exec('echo $$ >> here; echo fine');
        console.log(JSON.stringify({ ids: [...new Set(opened.map((sandbox) => sandbox.id))], created, stdout }));
        process.exit(0);
      `),
    );
    await Promise.all(programs.map((each) => each.line()));
    for (const { child } of programs) child.kill('SIGUSR2');
    const outcomes = (await Promise.all(programs.map(({ ended }) => ended))).map(({ output }) =>
      JSON.parse(output.split('\n')[1] ?? ''),
    );
    expect(new Set(outcomes.flatMap(({ ids }) => ids)).size).toBe(1);
    expect(outcomes.reduce((sum, { created }) => sum + created, 0)).toBe(1);
    expect(outcomes.map(({ stdout }) => stdout)).toEqual(Array(4).fill('fine\n'));
    expect(await ground.labelled('run', run)).toHaveLength(1);
    const manager = testManager();
    expect(await manager.endScope({ workflow: run })).toEqual({ closed: 1 });
    expect(await ground.labelled('run', run)).toEqual([]);
  });

  test('50 keys make 50 containers, and the end of their scope closes them all', async () => {
    const run = unique('fifty');
    const manager = testManager({ defaults: { image: IMAGES.alpine, labels: { run } } });
    const scope = { workflow: run };
    const opened = await Promise.all(
      Array.from({ length: 50 }, (_, index) => manager.open({ scope, session: `s${index}` })),
    );
    expect(opened.every(({ created }) => created)).toBe(true);
    expect(new Set(opened.map(({ id }) => id)).size).toBe(50);
    expect(await ground.labelled('run', run)).toHaveLength(50);
    const neighbour = await manager.open({ scope: { workflow: `${run}-neighbour` } });
    // Half of them by a manager that has opened none of them.
    await Promise.all(opened.slice(20).map((sandbox) => sandbox.close()));
    expect(await testManager().endScope(scope)).toEqual({ closed: 20 });
    expect(await manager.list({ scope })).toEqual([]);
    expect(await manager.endScope(scope)).toEqual({ closed: 0 });
    expect(await ground.labelled('run', run)).toHaveLength(1);
    expect((await neighbour.exec('echo here')).stdout).toBe('here\n');
    const lost = opened[0]?.exec('true');
    await expect(lost).rejects.toMatchObject({ code: 'SANDBOX_LOST', details: { reason: expect.any(String) } });
  });

  test('the end of a scope needs a scope', async () => {
    const manager = testManager();
    // biome-ignore lint/suspicious/noExplicitAny: what a caller without types may pass
    for (const scope of [{}, undefined, { workflow: 'a', agent: 'b' }, { workflow: '' }] as any[]) {
      await expect(manager.endScope(scope)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
  });

  test.each(['a/b:c', 'ü 漢字 🚢', '..', "'; rm -rf /", 'x'.repeat(512), '%3A', 'a%b\nc'])(
    'a key with %j in it is safe, and is its own',
    async (name) => {
      const manager = testManager({ defaults: { image: IMAGES.alpine } });
      const workflow = `${unique('k').slice(-20)}${name}`.slice(-512);
      const sandbox = await manager.open({ scope: { workflow }, session: name });
      expect(await manager.list({ scope: { workflow } })).toMatchObject([{ id: sandbox.id, key: sandbox.key }]);
      expect(
        await manager.endScope({
          workflow: `${workflow}:`.slice(0, 512) === workflow ? 'other' : `${workflow}:`.slice(-512),
        }),
      ).toEqual({ closed: 0 });
      expect(await manager.endScope({ workflow })).toEqual({ closed: 1 });
    },
  );
});
