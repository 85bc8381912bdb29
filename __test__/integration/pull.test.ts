import type { PullProgress } from 'cofferdam';
import { describeWithRegistry, Registry } from '../registry';
import { record, testManager, until } from '../support';

describeWithRegistry('pulling from a registry on loopback', () => {
  const manager = testManager();
  let registry: Registry;
  let image: string;

  beforeAll(async () => {
    registry = await Registry.start();
    image = registry.image;
  });

  beforeEach(() => registry.forget());

  afterAll(() => registry.stop());

  test('open() pulls what is missing, and tells the caller and every listener', async () => {
    const events = record(manager);
    const told: PullProgress[] = [];
    const sandbox = await manager.open({ session: 'isolated', image, onPullProgress: (step) => told.push(step) });
    expect((await sandbox.exec('echo pulled')).stdout).toBe('pulled\n');
    await until(() => told.some(({ status }) => /Downloaded|up to date/.test(status)));
    expect(told[0]).toMatchObject({ image, status: expect.any(String) });
    expect(events.filter(({ type }) => type === 'pull').length).toBe(told.length);
    await sandbox.close();
  });

  test('pull() gives its steps, and an image that is there is not pulled again by default', async () => {
    const steps: PullProgress[] = [];
    for await (const step of manager.pull(image)) steps.push(step);
    expect(steps.length).toBeGreaterThan(1);
    const told: PullProgress[] = [];
    const onPullProgress = (step: PullProgress) => told.push(step);
    await (await manager.open({ session: 'isolated', image, onPullProgress })).close();
    expect(told).toEqual([]);
    await (await manager.open({ session: 'isolated', image, pull: 'always', onPullProgress })).close();
    await until(() => told.length > 0);
  });

  test('what the registry does not have is IMAGE_NOT_FOUND, with what it said', async () => {
    const wrong = `${image.slice(0, image.lastIndexOf(':'))}:nope`;
    await expect(manager.open({ session: 'isolated', image: wrong })).rejects.toMatchObject({
      code: 'IMAGE_NOT_FOUND',
      details: { image: wrong },
    });
    await expect(manager.open({ session: 'isolated', image, pull: 'never' })).rejects.toMatchObject({
      code: 'IMAGE_NOT_FOUND',
    });
  });
});
