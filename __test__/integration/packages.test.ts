/**
 * Packages, installed by the real installers from indexes inside images that the suite makes: nothing here reaches a
 * network, though the sandbox that installs has one.
 */
import { SandboxManager } from 'cofferdam';
import Docker from 'dockerode';
import { describeWithEngine, IMAGES, program, testManager, unique, until } from '../support';

const docker = new Docker();
const made: string[] = [];

/** An image with what a script leaves on another one. */
async function imageWith(base: string, script: string): Promise<string> {
  const repo = 'cofferdam-test-packages';
  const tag = unique('t').toLowerCase();
  const container = await docker.createContainer({ Image: base, Cmd: ['sh', '-euc', script] });
  try {
    await container.start();
    const { StatusCode } = await container.wait();
    expect(StatusCode).toBe(0);
    await container.commit({ repo, tag });
  } finally {
    await container.remove({ force: true });
  }
  made.push(`${repo}:${tag}`);
  return `${repo}:${tag}`;
}

const WHEEL = `mkdir -p /srv/wheels && python - <<'END'
import zipfile
with zipfile.ZipFile('/srv/wheels/hello_cofferdam-1.0.0-py3-none-any.whl', 'w') as wheel:
    info = 'hello_cofferdam-1.0.0.dist-info/'
    wheel.writestr('hello_cofferdam.py', 'def greet(): return "hello from a wheel"')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: hello-cofferdam\\nVersion: 1.0.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
END`;
const FROM_WHEELS = { PIP_NO_INDEX: '1', PIP_FIND_LINKS: '/srv/wheels', SECRET_OF_THE_CALLER: 'do-not-keep' };
const GREET = 'import hello_cofferdam; print(hello_cofferdam.greet())';

const layers = async () =>
  (await docker.listImages({ filters: { label: ['cofferdam.base'] } })).flatMap(({ RepoTags }) => RepoTags ?? []);

describeWithEngine('packages', () => {
  let python: string;
  beforeAll(async () => {
    python = await imageWith('python:3.11-slim', WHEEL);
  }, 120_000);

  afterAll(async () => {
    await using manager = new SandboxManager();
    const ours = new Set(made);
    // Layers first: an image below another one only loses its name.
    for (const image of await docker.listImages({ filters: { label: ['cofferdam.base'] } })) {
      const base = await docker.getImage(image.Labels['cofferdam.base'] as string).inspect();
      if (!base.RepoTags.some((tag) => ours.has(tag))) continue;
      for (const tag of image.RepoTags ?? []) await docker.getImage(tag).remove({ force: true });
    }
    for (const name of made) await docker.getImage(name).remove({ force: true });
    await manager.prune();
  });

  test('are installed once, and the next run has them at once and without network', async () => {
    const manager = testManager();
    const run = () =>
      manager.run({ image: python, env: FROM_WHEELS, packages: { pip: ['hello-cofferdam==1.0.0'] }, code: GREET });
    const before = await layers();
    expect(await run()).toMatchObject({ stdout: 'hello from a wheel\n', image: python });
    const after = await layers();
    const added = after.filter((name) => !before.includes(name));
    expect(added).toHaveLength(1);
    expect(added[0]).toMatch(/^cofferdam-packages:[0-9a-f]{32}$/);

    // A manager that could not install finds what is there.
    const strict = testManager({ policy: { network: 'deny' } });
    const code = `${GREET}\nimport os; print(os.listdir('/sys/class/net'))`;
    const again = await strict.run({
      image: python,
      env: FROM_WHEELS,
      packages: { pip: ['hello-cofferdam==1.0.0'] },
      code,
    });
    expect(again.stdout).toBe("hello from a wheel\n['lo']\n");
    expect(await layers()).toEqual(after);

    const { Config } = await docker.getImage(added[0] as string).inspect();
    expect(JSON.stringify(Config)).not.toContain('do-not-keep');
  });

  test('come with a session, whose workdir is as the image has it', async () => {
    const manager = testManager();
    await using sandbox = await manager.open({
      image: python,
      env: FROM_WHEELS,
      packages: { pip: ['hello-cofferdam'] },
      user: '1000:1000',
    });
    expect(sandbox.image).toBe(python);
    const { stdout } = await sandbox.exec(`python -c '${GREET}'; touch mine && ls -A; ls -A /tmp`);
    expect(stdout).toBe('hello from a wheel\nmine\n');
  });

  test('are installed by one of many who ask at the same time, in this program and in others', async () => {
    const image = await imageWith(python, 'true');
    const before = await layers();
    const body = `
      const manager = new SandboxManager();
      const request = { image: ${JSON.stringify(image)}, env: ${JSON.stringify(FROM_WHEELS)},
        packages: { pip: ['hello-cofferdam'] }, code: ${JSON.stringify(GREET)} };
      const results = await Promise.all(Array.from({ length: 4 }, () => manager.run(request)));
      console.log(results.map(({ stdout }) => stdout.trim()).join());
      await manager.close();`;
    const programs = [program(body), program(body)];
    for (const { ended } of programs) {
      expect((await ended).output).toBe(`${Array(4).fill('hello from a wheel').join()}\n`);
    }
    expect((await layers()).filter((name) => !before.includes(name))).toHaveLength(1);
  });

  test('of npm are found by require and import, and of apt are programs', async () => {
    const node = await imageWith(
      'node:20-slim',
      `mkdir -p /srv/hello && cd /srv/hello && echo '{"name":"hello-cofferdam","version":"1.0.0","main":"index.js"}' > package.json &&
       echo 'module.exports = () => "hello from npm";' > index.js && npm pack --silent --pack-destination /srv`,
    );
    const manager = testManager();
    const packages = { npm: ['file:/srv/hello-cofferdam-1.0.0.tgz'] };
    const code = `console.log(require('hello-cofferdam')()); import('hello-cofferdam').then((m) => console.log(m.default()));`;
    expect((await manager.run({ runtime: 'node', image: node, packages, code })).stdout).toBe(
      'hello from npm\nhello from npm\n',
    );

    const debian = await imageWith(
      IMAGES.debian,
      `mkdir -p /srv/apt /build/DEBIAN /build/usr/bin && cd /srv/apt &&
       printf '#!/bin/sh\\necho hello from apt\\n' > /build/usr/bin/hello-cofferdam && chmod +x /build/usr/bin/hello-cofferdam &&
       printf 'Package: hello-cofferdam\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: t <t@example.org>\\nDescription: t\\n' > /build/DEBIAN/control &&
       dpkg-deb --build /build hello.deb &&
       { cat /build/DEBIAN/control; echo "Filename: ./hello.deb"; echo "Size: $(stat -c %s hello.deb)"; echo "SHA256: $(sha256sum hello.deb | cut -d' ' -f1)"; } > Packages &&
       rm -rf /etc/apt/sources.list.d/* && echo 'deb [trusted=yes] file:/srv/apt ./' > /etc/apt/sources.list`,
    );
    const run = await manager.run({
      runtime: 'bash',
      image: debian,
      packages: { apt: ['hello-cofferdam'] },
      code: 'hello-cofferdam',
    });
    expect(run.stdout).toBe('hello from apt\n');
  }, 120_000);

  test('that are not to be had are told with what the installer said, and nothing is kept', async () => {
    const manager = testManager();
    const before = await layers();
    const run = manager.run({ image: python, env: FROM_WHEELS, packages: { pip: ['no-such-package'] }, code: '1' });
    await expect(run).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/pip could not install no-such-package on image .*No matching distribution/s),
    });
    expect(await layers()).toEqual(before);
    const denied = testManager({ policy: { network: 'deny' } });
    const open = denied.open({ image: python, packages: { pip: ['other'] } });
    await expect(open).rejects.toMatchObject({ code: 'POLICY_DENIED', message: /needs network/ });
    const missing = manager.run({ runtime: 'bash', image: IMAGES.alpine, packages: { apt: ['jq'] }, code: '1' });
    await expect(missing).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND', message: /"alpine:3.19" has no apt/ });
  });

  test('can be given up while they are installed, and leave nothing', async () => {
    const slow = await imageWith(
      python,
      `printf '#!/bin/sh\\nexec sleep 1000\\n' > /usr/local/bin/apt-get && chmod +x /usr/local/bin/apt-get`,
    );
    const manager = testManager();
    const stop = new AbortController();
    const open = manager.open({ image: slow, packages: { apt: ['jq'] }, signal: stop.signal });
    const installing = async () => (await docker.listContainers({ all: true, filters: { ancestor: [slow] } })).length;
    while ((await installing()) === 0) await new Promise((resolve) => setTimeout(resolve, 25));
    stop.abort(new Error('enough'));
    await expect(open).rejects.toThrow('enough');
    while ((await installing()) > 0) await new Promise((resolve) => setTimeout(resolve, 25));
  });

  test('are pruned when their image is no more, or when asked', async () => {
    const image = await imageWith(python, 'touch /made');
    const manager = testManager();
    const before = await layers();
    const packages = { pip: ['hello-cofferdam'] };
    await manager.run({ image, env: FROM_WHEELS, packages, code: GREET });
    const [layer] = (await layers()).filter((name) => !before.includes(name));
    expect((await manager.prune({ packages: true, olderThanMs: 3_600_000 })).packages).not.toContain(layer);
    expect((await manager.prune({ packages: true, dryRun: true })).packages).toContain(layer);
    await docker.getImage(image).remove();
    made.splice(made.indexOf(image), 1);
    // Not while the engine still clears away the sandbox of the run.
    await until(async () => {
      await manager.prune();
      return !(await layers()).includes(layer as string);
    });
  });
});
