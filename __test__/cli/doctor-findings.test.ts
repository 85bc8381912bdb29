/** What doctor makes of machines that cannot be had here: Ubuntu with its AppArmor, rootless engines, Windows. */
import type { EngineInfo } from 'cofferdam';
import { engineFound } from '../../ts/cli/doctor/engine';
import { type KernelSupport, namespacesFound, namespacesMissing } from '../../ts/cli/doctor/user-namespaces';

const PLAIN: KernelSupport = {
  isRoot: false,
  maxUserNamespaces: 10_000,
  unprivilegedClone: true,
  apparmorRestricts: false,
  apparmor: true,
  inContainer: false,
  subordinateIds: true,
  newuidmap: true,
};

const refused = new Error('a sandbox of namespaces could not be made: unshare: Operation not permitted. Use an engine');

describe('why namespaces cannot be made', () => {
  test.each<[string, Partial<KernelSupport>, RegExp, RegExp]>([
    ['Ubuntu since 23.10', { apparmorRestricts: true }, /^.*AppArmor prevents programs/, /npx cofferdam setup$/],
    [
      'Debian with its switch off',
      { unprivilegedClone: false },
      /for root only/,
      /kernel\.unprivileged_userns_clone=1$/,
    ],
    ['a hardened machine', { maxUserNamespaces: 0 }, /switched off/, /user\.max_user_namespaces=10000$/],
    ['a container', { inContainer: true }, /runs in a container/, /seccomp=unconfined .*systempaths=unconfined/],
    ['anything else', {}, /unshare: Operation not permitted$/, /docker/],
  ])('%s', (_, ground, cause, cure) => {
    const [finding] = namespacesMissing('problem', refused, { ...PLAIN, ...ground });
    expect(finding).toMatchObject({ id: 'namespaces', state: 'problem' });
    expect(finding?.text).toMatch(cause);
    expect(finding?.cure).toMatch(cure);
  });
});

const DOCKER: EngineInfo = {
  backend: 'docker',
  version: '27.3.1',
  apiVersion: '1.47',
  abilities: {
    host: 'unix:///run/user/1000/docker.sock',
    foundBy: 'context rootless',
    product: 'docker',
    architecture: 'amd64',
    osType: 'linux',
    cgroupVersion: '2',
    storageDriver: 'overlay2',
    seccomp: true,
    apparmor: true,
    userns: false,
    rootless: false,
  },
  limits: { cpus: 'enforced', memoryMb: 'enforced', pids: 'enforced', workspaceMb: 'watched', openFiles: 'enforced' },
};

function engine(abilities: EngineInfo['abilities'], limits: Partial<EngineInfo['limits']> = {}): EngineInfo {
  return { ...DOCKER, abilities: { ...DOCKER.abilities, ...abilities }, limits: { ...DOCKER.limits, ...limits } };
}

const NO_LIMITS = { cpus: 'none', memoryMb: 'none', pids: 'none' } as const;

describe('what is said of an engine', () => {
  test('all is well', () => {
    const findings = engineFound(DOCKER);
    expect(findings.filter(({ state }) => state !== 'ok')).toEqual([]);
    expect(findings[0]?.text).toBe(
      'Docker 27.3.1 at unix:///run/user/1000/docker.sock, from the docker context rootless',
    );
  });

  test.each<[string, EngineInfo, string, RegExp, RegExp]>([
    [
      'rootless, cgroups v1',
      engine({ rootless: true, cgroupVersion: '1' }, NO_LIMITS),
      'engine.limits',
      /not enforced/,
      /unified_cgroup_hierarchy=1/,
    ],
    [
      'rootless, no delegation',
      engine({ rootless: true }, NO_LIMITS),
      'engine.limits',
      /CPUs, memory, processes not enforced/,
      /Delegate=cpu/,
    ],
    [
      'no memory cgroup',
      engine({}, { memoryMb: 'none' }),
      'engine.limits',
      /memory not enforced/,
      /cgroup_enable=memory/,
    ],
    ['no filter', engine({ seccomp: false }), 'engine.security', /not filtered/, /daemon\.json/],
    [
      'copies of images',
      engine({ storageDriver: 'vfs' }),
      'engine.storage',
      /copies its whole image/,
      /fuse-overlayfs/,
    ],
    ['Windows containers', engine({ osType: 'windows' }), 'engine.os', /sandboxes are Linux/, /SwitchLinuxEngine/],
    ['another processor', engine({ architecture: 's390x' }), 'engine.architecture', /s390x/, /docker context use/],
    [
      'an old Podman',
      { ...engine({ product: 'podman' }), version: '4.9.3' },
      'engine.podman',
      /Podman 4\.9\.3/,
      /podman$/,
    ],
  ])('%s', (_, info, id, text, cure) => {
    const unwell = engineFound(info).filter(({ state }) => state !== 'ok');
    expect(unwell.map((finding) => finding.id)).toEqual([id]);
    expect(unwell[0]?.text).toMatch(text);
    expect(unwell[0]?.cure).toMatch(cure);
  });

  test('a new Podman is well', () => {
    const findings = engineFound({ ...engine({ product: 'podman' }), version: '5.1.0' });
    expect(findings.filter(({ state }) => state !== 'ok')).toEqual([]);
  });

  test('those that were tried before it, each with its cure', () => {
    const tried = [
      { host: 'unix:///var/run/docker.sock', source: 'default', reason: 'refused' as const, problem: 'x' },
    ];
    const unwell = engineFound({ ...DOCKER, tried }).filter(({ state }) => state !== 'ok');
    expect(unwell).toMatchObject([{ id: 'engine.tried.1', state: 'warning', cure: expect.stringMatching(/docker/) }]);
  });
});

describe('what is said of namespaces for an ordinary user', () => {
  const info: EngineInfo = {
    ...DOCKER,
    backend: 'namespaces',
    abilities: { state: '/s', storage: 'disk' },
    tier: 'full',
  };
  const unwell = (ground: Partial<KernelSupport>, of: EngineInfo = info) =>
    namespacesFound(of, { ...PLAIN, ...ground }).filter(({ state }) => state !== 'ok');

  test('all is well', () => expect(unwell({})).toEqual([]));

  test.each<[string, Partial<KernelSupport>, Partial<EngineInfo>, string, RegExp]>([
    ['no newuidmap', { newuidmap: false }, {}, 'namespaces.ids', /uidmap|shadow/],
    ['no range of ids', { subordinateIds: false }, {}, 'namespaces.ids', /--add-subuids/],
    ['no cgroup', {}, { limits: { ...DOCKER.limits, cpus: 'none' } }, 'namespaces.limits', /Delegate=yes/],
    ['no overlay', {}, { abilities: { state: '/s', storage: 'memory' } }, 'namespaces.storage', /COFFERDAM_STATE/],
  ])('%s', (_, ground, change, id, cure) => {
    const findings = unwell(ground, { ...info, ...change });
    expect(findings).toMatchObject([{ id, state: 'warning', cure: expect.stringMatching(cure) }]);
  });
});
