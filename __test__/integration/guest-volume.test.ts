import { existsSync, readdirSync, realpathSync, rmSync, statSync, truncateSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { SandboxManager } from 'cofferdam';
import { describeWithOwnEngine, OwnEngine } from '../own-engine';
import { IMAGES, program, until } from '../support';

const image = IMAGES.alpine;

describeWithOwnEngine('the guest on an engine', () => {
  let engine: OwnEngine;
  let size = 0;

  beforeAll(async () => {
    engine = await OwnEngine.start(image);
    expect(await answer(engine)).toBe('works\n');
    size = statSync(guest(engine) ?? '').size;
  });

  afterAll(() => engine?.[Symbol.asyncDispose]());

  test.each<[string, (guest: string) => void]>([
    ['of which a part is there', (guest) => truncateSync(guest, 218_494)],
    ['that is empty', (guest) => truncateSync(guest, 0)],
    ['that is not there', (guest) => rmSync(guest)],
  ])('%s is brought again', async (_, spoil) => {
    spoil(realpathSync(guest(engine) ?? ''));
    expect(await answer(engine)).toBe('works\n');
  });

  test('is never there in part, whenever the program that brings it is killed', async () => {
    const opens = `await new SandboxManager({ docker: { host: '${engine.host}' }, defaults: { image: '${image}' } }).open();`;
    for (let delay = 0; delay < 240; delay += 20) {
      await clear(engine);
      const { child, ended } = program(opens);
      const volumes = `${engine.data}/volumes`;
      await until(() => readdirSync(volumes).some((name) => name.startsWith('cofferdam-guest-')));
      await pause(delay);
      child.kill('SIGKILL');
      await ended;
      const found = guest(engine);
      if (found) expect(statSync(found).size).toBe(size);
    }
    expect(await answer(engine)).toBe('works\n');
  }, 300_000);

  test('is brought by many programs at once', async () => {
    await clear(engine);
    const { host } = engine;
    const programs = Array.from({ length: 8 }, () =>
      program(`
        const manager = new SandboxManager({ docker: { host: '${host}' }, defaults: { image: '${image}' } });
        process.stdout.write((await (await manager.open()).exec('echo works')).stdout);
        await manager.close();`),
    );
    const outcomes = await Promise.all(programs.map(({ ended }) => ended));
    expect(outcomes.map(({ output }) => output)).toEqual(programs.map(() => 'works\n'));
  });
});

/** Where the guest is, by the name that sandboxes know it by. */
function guest(engine: OwnEngine): string | undefined {
  const volumes = `${engine.data}/volumes`;
  const volume = readdirSync(volumes).find((name) => name.startsWith('cofferdam-guest-'));
  const guest = `${volumes}/${volume}/_data/guest`;
  return existsSync(guest) ? guest : undefined;
}

/** As if nobody had ever come along; what somebody who was killed had just asked for may still come. */
async function clear({ client }: OwnEngine): Promise<void> {
  await until(async () => {
    const containers = await client.listContainers({ all: true });
    const volumes = (await client.listVolumes()).Volumes;
    const removals = [
      ...containers.map(({ Id }) => client.getContainer(Id).remove({ force: true })),
      ...volumes.map(({ Name }) => client.getVolume(Name).remove()),
    ];
    await Promise.allSettled(removals);
    return removals.length === 0;
  });
}

/** What a program says that comes along now. */
async function answer(engine: OwnEngine): Promise<string> {
  const manager = new SandboxManager({ docker: { host: engine.host }, defaults: { image } });
  const { stdout } = await (await manager.open()).exec('echo works');
  await manager.close();
  return stdout;
}
