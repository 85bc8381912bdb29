import { OwnPodman } from '../own-podman';
import { describeOnDocker, IMAGES, unlessMissing } from '../support';
import { finding, report } from './doctor-program';

const program = process.env.COFFERDAM_TEST_PODMAN;
const isRoot = process.platform === 'linux' && process.getuid?.() === 0;

unlessMissing(
  program && isRoot ? undefined : 'there is no Podman here that root could start; npm test brings one',
  describeOnDocker,
)('doctor on Podman', () => {
  test('knows it, opens a sandbox on it, and says what this version lacks', async () => {
    await using podman = await OwnPodman.start(program as string, IMAGES.alpine);
    const { Version } = await podman.client.version();
    const found = await report({ env: { DOCKER_HOST: podman.host } }, ['--image', IMAGES.alpine]);
    expect(finding(found, 'engine')).toMatchObject({
      state: 'ok',
      text: expect.stringMatching(`^Podman ${Version} .*from DOCKER_HOST`),
      facts: { product: 'podman', version: Version, host: podman.host },
    });
    const [major = 0, minor = 0] = Version.split('.').map(Number);
    const isNew = major > 5 || (major === 5 && minor >= 1);
    expect(finding(found, 'engine.podman')).toMatchObject(
      isNew
        ? { state: 'ok' }
        : {
            state: 'warning',
            text: expect.stringContaining('cannot change the limits of a running sandbox'),
            cure: expect.stringMatching(/podman$/),
          },
    );
    expect(finding(found, 'sandboxes.docker')).toMatchObject({ state: 'ok', facts: { image: IMAGES.alpine } });
    expect(found).toMatchObject({ code: 0, ok: true, backend: 'docker' });
    expect(await podman.client.listContainers({ all: true })).toEqual([]);
  });
});
