import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inContainer } from '../in-container';
import { describeOnDocker } from '../support';
import { afterMounting, describeAsRoot, doctor, finding, Installed, report, WITHOUT_SOCKETS } from './doctor-program';
import { MAIN } from './program';
import { OLD, StandIn } from './stand-in';

const SOCKET = (process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock').replace('unix://', '');

const withNamespaces = process.env.COFFERDAM_NO_NAMESPACES ? test.skip : test;

describe('doctor on an engine that was named wrongly', () => {
  test.each([
    ['tcp://127.0.0.1:1', 'refused', /nothing listens there/],
    ['unix:///nowhere/docker.sock', 'missing', /there is no such socket/],
    ['nonsense', 'bad-address', /not an address of an engine/],
    ['tcp://no.such.machine.invalid:2375', 'unresolved', /the host name cannot be resolved/],
    ['ssh://me@no.such.machine.invalid', 'unresolved', /the host name cannot be resolved/],
  ])('DOCKER_HOST=%s: %s', async (host, reason, cause) => {
    // A resolver that gives up before we do, however the machine's own is set.
    const found = await report({ env: { DOCKER_HOST: host, RES_OPTIONS: 'timeout:1 attempts:1' } });
    // It was meant, so that nothing else is taken in its place.
    expect(found).toMatchObject({ code: 1, ok: false, backend: null });
    expect(finding(found, 'engine')).toMatchObject({
      state: 'problem',
      text: expect.stringMatching(cause),
      cure: 'unset DOCKER_HOST',
      facts: { host, source: 'DOCKER_HOST', reason },
    });
    expect(finding(found, 'engine').text).toContain(`${host} (from DOCKER_HOST)`);
  });

  test('people read the cause, and the cure below it', async () => {
    const { code, stdout } = await doctor([], { env: { DOCKER_HOST: 'tcp://127.0.0.1:1' } });
    expect(code).toBe(1);
    expect(stdout).toMatch(/✗ the engine at tcp:\/\/127\.0\.0\.1:1 .*: nothing listens there.*\n +unset DOCKER_HOST\n/);
    expect(stdout).toMatch(/\nno sandbox opens here: (one problem is|2 problems are) in the way\n$/);
  });

  test('--host is taken back by leaving it out', async () => {
    const found = await report({}, ['--host', 'unix:///nowhere/docker.sock']);
    expect(found.code).toBe(1);
    expect(finding(found, 'engine')).toMatchObject({ cure: 'npx cofferdam doctor', facts: { source: 'option' } });
  });
});

describe('doctor on an engine that does not do', () => {
  test('an API that is too old: update it', async () => {
    await using engine = await StandIn.http(OLD);
    const found = await report({ env: { DOCKER_HOST: engine.host } });
    expect(found).toMatchObject({ code: 1, ok: false });
    expect(finding(found, 'engine')).toMatchObject({
      state: 'problem',
      text: expect.stringMatching(/its API is 1\.38, and 1\.41 \(Docker 20\.10, Podman 4\.0\) is the oldest/),
      cure: expect.stringMatching(/install/),
      facts: { reason: 'old-api' },
    });
  });

  test('something else that listens there', async () => {
    await using engine = await StandIn.http((_, response) => response.end('hello'));
    const found = await report({ env: { DOCKER_HOST: engine.host } });
    expect(finding(found, 'engine')).toMatchObject({
      text: expect.stringContaining('is not a container engine'),
      cure: 'unset DOCKER_HOST',
      facts: { reason: 'not-an-engine' },
    });
  });

  test('an engine that hangs does not hang doctor', async () => {
    await using engine = await StandIn.hanging();
    const found = await report({ env: { DOCKER_HOST: engine.host } });
    expect(found.code).toBe(1);
    expect(finding(found, 'engine')).toMatchObject({
      text: expect.stringContaining('it did not answer within 5 s'),
      cure: 'unset DOCKER_HOST',
      facts: { reason: 'silent' },
    });
  });
});

describeAsRoot('doctor where engines usually are', () => {
  const state = mkdtempSync(path.join(tmpdir(), 'cofferdam-state-'));
  afterAll(() => rmSync(state, { recursive: true, force: true }));

  test('one that hangs is to be restarted', async () => {
    await using engine = await StandIn.hanging();
    const by = afterMounting(
      `${WITHOUT_SOCKETS}; touch /run/docker.sock; mount --bind ${engine.socket} /run/docker.sock`,
    );
    const found = await report({ by });
    expect(finding(found, 'engine')).toMatchObject({
      text: expect.stringContaining('did not answer within 5 s'),
      cure: expect.stringMatching(/(systemctl restart docker|docker restart)$/),
      facts: { source: 'default', reason: 'silent' },
    });
  });

  test('one that ended and left its socket is to be started', async () => {
    const by = afterMounting(
      `${WITHOUT_SOCKETS}; node -e 'require("net").createServer().listen("/run/docker.sock", () => process.kill(process.pid, 9))' || true`,
    );
    const found = await report({ by, env: { PATH: `${path.dirname(process.execPath)}:${process.env.PATH}` } });
    expect(finding(found, 'engine')).toMatchObject({
      text: expect.stringContaining('nothing listens there'),
      cure: expect.stringMatching(/(systemctl start docker|docker start)$/),
      facts: { reason: 'refused' },
    });
  });

  withNamespaces('none at all: namespaces stand in, and doctor says how to have one', async () => {
    const found = await report({ by: afterMounting(WITHOUT_SOCKETS) });
    expect(found).toMatchObject({ code: 0, ok: true, backend: 'namespaces' });
    expect(finding(found, 'engine')).toMatchObject({
      state: 'warning',
      text: expect.stringMatching(/^no container engine was found/),
      cure: expect.stringMatching(/docker/),
    });
    expect(found.verdict).toMatch(/^sandboxes open here with namespaces in/);
  });

  test('none at all, and user namespaces are switched off: both have a cure', async () => {
    const off = `${WITHOUT_SOCKETS}; echo 0 > /proc/sys/user/max_user_namespaces`;
    const by = ['unshare', '--user', '--map-root-user', ...afterMounting(off).slice(1)];
    const found = await report({
      by,
      env: { COFFERDAM_STATE: state },
    });
    expect(found).toMatchObject({ code: 1, ok: false, verdict: 'no sandbox opens here: 2 problems are in the way' });
    expect(finding(found, 'engine')).toMatchObject({ state: 'problem', cure: expect.stringMatching(/docker/) });
    expect(finding(found, 'namespaces')).toMatchObject({
      state: 'problem',
      text: expect.stringContaining('user namespaces are switched off'),
      cure: 'sysctl -w user.max_user_namespaces=10000',
      facts: { maxUserNamespaces: 0 },
    });
  });
});

describeOnDocker('doctor in a container', () => {
  test('no engine is in it, and Docker lets it make no namespaces: both have a cure', async () => {
    const { code, output } = await inContainer([MAIN, 'doctor', '--json']);
    expect(code).toBe(1);
    const found = JSON.parse(output);
    expect(finding(found, 'engine')).toMatchObject({ state: 'problem', cure: 'apt-get install -y docker.io' });
    expect(finding(found, 'namespaces')).toMatchObject({
      state: 'problem',
      text: expect.stringContaining('runs in a container'),
      cure: expect.stringContaining('--security-opt seccomp=unconfined'),
    });
  });
});

(process.platform === 'linux' && process.getuid?.() === 0 ? describeOnDocker : describe.skip)(
  'doctor for a user who may not use the engine',
  () => {
    const { gid, mode } = process.env.COFFERDAM_NO_ENGINE ? { gid: 0, mode: 0 } : statSync(SOCKET);
    // Where no group may open it, only root can.
    const cure =
      gid === 0 || (mode & 0o020) === 0 ? 'sudo npx cofferdam doctor' : /^sudo usermod -aG (\S+) \$USER && newgrp \1$/;

    test('says so, and how to be allowed to', async () => {
      using installed = new Installed({ addon: true });
      const { asNobody } = installed;
      const found = await report({ ...asNobody, env: { ...asNobody.env, DOCKER_HOST: `unix://${SOCKET}` } });
      expect(found).toMatchObject({ code: 1, ok: false });
      expect(finding(found, 'engine')).toMatchObject({
        state: 'problem',
        text: expect.stringContaining('this user may not open its socket'),
        cure: expect.stringMatching(cure),
        facts: { reason: 'denied' },
      });
    });

    withNamespaces('namespaces stand in for one that nobody named', async () => {
      using installed = new Installed({ addon: true });
      const found = await report(installed.asNobody);
      expect(finding(found, 'engine')).toMatchObject({
        state: 'warning',
        facts: { reason: 'denied', source: 'default' },
      });
      expect(found).toMatchObject({ code: 0, ok: true, backend: 'namespaces' });
      expect(finding(found, 'namespaces').text).toContain('as an ordinary user');
      expect(finding(found, 'namespaces.ids')).toMatchObject({
        state: 'warning',
        cure: expect.stringMatching(/^sudo /),
      });
    });
  },
);
