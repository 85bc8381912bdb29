import { existsSync } from 'node:fs';
import path from 'node:path';
import type Docker from 'dockerode';
import { CHECKOUT, inContainer } from '../in-container';
import { describeOnNamespaces, unlessMissing } from '../support';

/** Opens a sandbox in a container of its own, and says what came of it. */
const PROGRAM = `
  const { SandboxManager } = require(${JSON.stringify(path.join(CHECKOUT, 'dist/index.js'))});
  (async () => {
    const manager = new SandboxManager({ backend: 'namespaces' });
    const sandbox = await manager.open({ image: 'host' });
    const { stdout } = await sandbox.exec('echo inside; ls /proc | grep -c "^[0-9]*$"');
    console.log(JSON.stringify({ stdout, info: await manager.info() }));
    await manager.close();
  })().catch(({ code, message }) => console.log(JSON.stringify({ code, message })));
`;

async function opened(freedom: Docker.HostConfig): Promise<Record<string, unknown>> {
  return JSON.parse((await inContainer(['-e', PROGRAM], freedom)).output);
}

// An ordinary user has no engine to try it with.
const hasEngine = existsSync('/var/run/docker.sock') && process.getuid?.() === 0;
const describeWithContainers = unlessMissing(
  hasEngine ? undefined : 'it takes root and an engine',
  describeOnNamespaces,
);

describeWithContainers('namespaces in a container that Docker itself confines', () => {
  test('are refused with the options that would allow them', async () => {
    expect(await opened({})).toMatchObject({
      code: 'ENGINE_UNAVAILABLE',
      message: expect.stringMatching(/seccomp=unconfined .*systempaths=unconfined/),
    });
  });

  test('work with those options', async () => {
    const SecurityOpt = ['seccomp=unconfined', 'apparmor=unconfined'];
    // As the docker command says systempaths=unconfined to its engine.
    const freed = await opened({ SecurityOpt, MaskedPaths: [], ReadonlyPaths: [] } as Docker.HostConfig);
    expect(freed).toMatchObject({ stdout: expect.stringMatching(/^inside\n/), info: { tier: 'full' } });
  });
});
