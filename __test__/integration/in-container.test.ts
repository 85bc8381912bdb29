import { existsSync } from 'node:fs';
import path from 'node:path';
import Docker from 'dockerode';
import { describeOnNamespaces } from '../support';

const repository = path.resolve(__dirname, '../..');
const IMAGE = 'node:20-slim';

/** Opens a sandbox in a container of its own, and says what came of it. */
const PROGRAM = `
  const { SandboxManager } = require(${JSON.stringify(path.join(repository, 'dist/index.js'))});
  (async () => {
    const manager = new SandboxManager({ backend: 'namespaces' });
    const sandbox = await manager.open({ image: 'host' });
    const { stdout } = await sandbox.exec('echo inside; ls /proc | grep -c "^[0-9]*$"');
    console.log(JSON.stringify({ stdout, info: await manager.info() }));
    await manager.close();
  })().catch(({ code, message }) => console.log(JSON.stringify({ code, message })));
`;

async function inContainer(freedom: Docker.HostConfig): Promise<Record<string, unknown>> {
  const docker = new Docker();
  const container = await docker.createContainer({
    Image: IMAGE,
    Cmd: ['node', '-e', PROGRAM],
    Tty: true,
    HostConfig: { ...freedom, NetworkMode: 'none', Binds: [`${repository}:${repository}:ro`] },
  });
  try {
    const stream = await container.attach({ stream: true, stdout: true });
    let output = '';
    stream.on('data', (data) => {
      output += data;
    });
    await container.start();
    await container.wait();
    return JSON.parse(output);
  } finally {
    await container.remove({ force: true });
  }
}

// An ordinary user has no engine to try it with.
const hasEngine = existsSync('/var/run/docker.sock') && process.getuid?.() === 0;
const describeWithContainers = hasEngine ? describeOnNamespaces : describe.skip;

describeWithContainers('namespaces in a container that Docker itself confines', () => {
  test('are refused with the options that would allow them', async () => {
    expect(await inContainer({})).toMatchObject({
      code: 'ENGINE_UNAVAILABLE',
      message: expect.stringMatching(/seccomp=unconfined .*systempaths=unconfined/),
    });
  });

  test('work with those options', async () => {
    const SecurityOpt = ['seccomp=unconfined', 'apparmor=unconfined'];
    // As the docker command says systempaths=unconfined to its engine.
    const freed = await inContainer({ SecurityOpt, MaskedPaths: [], ReadonlyPaths: [] } as Docker.HostConfig);
    expect(freed).toMatchObject({ stdout: expect.stringMatching(/^inside\n/), info: { tier: 'full' } });
  });
});
