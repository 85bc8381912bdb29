import { ground } from '../ground';
import { describeWithEngine, IMAGES, program, testManager, unique, until } from '../support';

const PROGRAMS = 100;
const AT_ONCE = 10;

describeWithEngine('a hundred host programs, each killed at a random moment', () => {
  test('leave no sandbox, nothing on the machine, and no workspace but those that were asked to persist', async () => {
    const run = unique('killed');
    const before = new Set(await ground.debris());
    let persistent = 0;

    async function live(number: number) {
      const persist = number % 20 === 0;
      const { child, ended, line } = program(`
        const manager = new SandboxManager({
          orphanTimeoutMs: 1000,
          warm: ${number % 10 === 0 ? `{ '${IMAGES.alpine}': 1 }` : '{}'},
          defaults: { image: '${IMAGES.alpine}', labels: { run: '${run}' } },
        });
        console.log('up');
        for (let round = 0; ; round++) {
          const scope = { workflow: '${run}-${number}' };
          const sandbox = await manager.open({ scope, session: String(round), persist: ${persist} && round === 0 });
          await sandbox.spawn('sleep 1000', { detached: true });
          await Promise.all([sandbox.exec('true'), sandbox.files.write('file', 'x'.repeat(1_000_000))]);
          console.log('round');
        }
      `);
      await line();
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_500));
      child.kill('SIGKILL');
      const { signal } = await ended;
      expect(signal).toBe('SIGKILL');
      if (persist) persistent++;
    }

    const numbers = Array.from({ length: PROGRAMS }, (_, index) => index);
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (let number = numbers.pop(); number !== undefined; number = numbers.pop()) await live(number);
      }),
    );

    // A container that was made and not started has no guest that could end it: the next program that comes along does.
    const manager = testManager();
    const left = () => ground.labelled('run', run);
    await until(async () => {
      await manager.prune();
      return (await left()).length === 0;
    });
    // Other suites are at work beside this one: what is theirs comes and goes.
    await until(async () => {
      await manager.prune();
      return (await ground.debris()).every((name) => before.has(name));
    });
    // One that was just taken from a warm pool has no label that the engine knows, and the pool's time to end.
    const stopped = await until(async () => {
      const ours = (await manager.list()).filter(({ key }) => key.startsWith(`workflow:${run}`));
      return ours.every(({ state }) => state === 'stopped') && ours;
    });
    for (const info of stopped) {
      expect(info).toMatchObject({ state: 'stopped', key: expect.stringMatching(/:0$/) });
      await (await manager.get(info.id)).close({ keepData: false });
    }
    expect(stopped.length).toBeLessThanOrEqual(persistent);
    for (const { key } of stopped) expect(await ground.workspaces(key)).toEqual([]);
  }, 300_000);
});
