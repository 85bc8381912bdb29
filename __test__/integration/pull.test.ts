import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { PullProgress } from 'cofferdam';
import Docker from 'dockerode';
import { describeWithEngine, IMAGES, record, testManager, until } from '../support';

const program = process.env.COFFERDAM_TEST_REGISTRY;
if (!program) console.warn('SKIPPED: pulls, because there is no docker-registry here; npm test brings one');

const docker = new Docker();

(program ? describeWithEngine : describe.skip)('pulling from a registry on loopback', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-registry-'));
  const manager = testManager();
  let registry: ChildProcess;
  let image: string;

  beforeAll(async () => {
    const port = await freePort();
    const config = path.join(folder, 'config.yml');
    const storage = { filesystem: { rootdirectory: folder } };
    // JSON is YAML.
    writeFileSync(config, JSON.stringify({ version: 0.1, storage, http: { addr: `127.0.0.1:${port}` } }));
    registry = spawn(program as string, ['serve', config], { stdio: 'ignore' });
    await until(() =>
      fetch(`http://127.0.0.1:${port}/v2/`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    image = `127.0.0.1:${port}/team/pulled:1`;
    await docker.getImage(IMAGES.alpine).tag({ repo: image.slice(0, -2), tag: '1' });
    const pushing = await docker.getImage(image).push({ authconfig: { serveraddress: 'none' } });
    await once(pushing.resume(), 'end');
  });

  beforeEach(() =>
    docker
      .getImage(image)
      .remove()
      .catch(() => {}),
  );

  afterAll(async () => {
    await docker
      .getImage(image)
      .remove()
      .catch(() => {});
    registry.kill();
    await once(registry, 'exit');
    rmSync(folder, { recursive: true });
  });

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

  test('pull() gives its steps, and an image that is there is not pulled again unless told', async () => {
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

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
