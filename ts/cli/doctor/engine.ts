/** The container engine: whether and how it was found, what it is, and what it can do. */
import { SandboxError } from '../../errors';
import type { EngineAttempt, EngineInfo } from '../../options';
import { cureOf, cureOfNoEngine } from './engine-cure';
import { type Finding, faulty, ok } from './finding';
import { asRoot, bootingWith, installing, service } from './machine';
import { TookTooLong } from './time-limit';

const GROUP = 'Engine';

/** Why a place was tried. */
function originOf(source: string): string {
  if (source === 'option') return 'from --host';
  if (source === 'DOCKER_HOST') return 'from DOCKER_HOST';
  if (source.startsWith('context ')) return `from the docker ${source}`;
  return 'at a default location';
}

export function engineFound(info: EngineInfo): Finding[] {
  const { abilities, version, apiVersion, tried = [] } = info;
  const { host = '', foundBy = 'default', operatingSystem } = abilities;
  const product = isPodman(info) ? 'Podman' : 'Docker';
  const on = operatingSystem ? ` on ${operatingSystem}` : '';
  const found = `${product} ${version}${on} at ${host}, ${originOf(String(foundBy))}`;
  const facts = { product: product.toLowerCase(), version, host, foundBy, warnings: abilities.warnings ?? null };
  return [
    ok(GROUP, 'engine', found, facts),
    ...tried.map((attempt, index) => failedAttempt('warning', `engine.tried.${index + 1}`, attempt)),
    ok(GROUP, 'engine.api', `API ${apiVersion} (at least 1.41 is needed)`, { apiVersion, oldest: '1.41' }),
    ...incompatible(info),
    ...(isPodman(info) ? [podman(info)] : []),
    storage(info),
    limits(info),
    security(info),
    ok(
      GROUP,
      'engine.runtimes',
      `runtimes: ${String(abilities.runtimes ?? 'its own')
        .split(',')
        .sort()
        .join(', ')}`,
      {
        runtimes: String(abilities.runtimes ?? '')
          .split(',')
          .filter(Boolean)
          .sort(),
      },
    ),
  ];
}

export function engineMissing(state: 'warning' | 'problem', error: unknown): Finding[] {
  if (error instanceof TookTooLong)
    return [faulty(state, GROUP, 'engine', error.message, service('restart', 'docker'))];
  const tried = attemptsOf(error);
  if (tried.length > 0) {
    return tried.map((attempt, index) =>
      failedAttempt(state, index === 0 ? 'engine' : `engine.tried.${index + 1}`, attempt),
    );
  }
  const text =
    error instanceof SandboxError && error.code === 'ENGINE_UNAVAILABLE'
      ? 'no container engine was found: DOCKER_HOST and docker contexts name none, and no default socket exists'
      : (error as Error).message;
  return [faulty(state, GROUP, 'engine', text, cureOfNoEngine(), { tried })];
}

export function attemptsOf(error: unknown): EngineAttempt[] {
  if (!(error instanceof SandboxError)) return [];
  return Array.isArray(error.details.tried) ? (error.details.tried as EngineAttempt[]) : [];
}

const CAUSES: Partial<Record<EngineAttempt['reason'], string>> = {
  denied: 'permission denied: this user may not open its socket',
  refused: 'nothing listens there: the engine is not running, or is somewhere else',
  missing: 'there is no such socket: the engine is not running, or is somewhere else',
  unresolved: 'the host name cannot be resolved',
  'bad-address': 'not an address of an engine; those begin with unix://, tcp:// or ssh://',
  'not-an-engine': 'what answers there is not a container engine',
};

function failedAttempt(state: 'warning' | 'problem', id: string, attempt: EngineAttempt): Finding {
  const { host, source, reason, problem } = attempt;
  const cause = CAUSES[reason];
  const text = `the engine at ${host} (${originOf(source)}) cannot be used: ${cause ?? problem}`;
  return faulty(state, GROUP, id, text, cureOf(attempt), { ...attempt });
}

export function isPodman({ abilities }: EngineInfo): boolean {
  return abilities.product === 'podman';
}

/** Engines on which sandboxes cannot run. */
function incompatible({ abilities }: EngineInfo): Finding[] {
  const { osType = 'linux', architecture } = abilities;
  if (osType !== 'linux') {
    const text = `the engine runs ${osType} containers, and sandboxes are Linux`;
    const cure = '& "$Env:ProgramFiles\\Docker\\Docker\\DockerCli.exe" -SwitchLinuxEngine';
    return [faulty('problem', GROUP, 'engine.os', text, cure, { osType })];
  }
  if (['amd64', 'x86_64', 'arm64', 'aarch64'].includes(String(architecture))) return [];
  const text = `the engine's machine is ${architecture}, and sandboxes run on x64 and arm64`;
  return [faulty('problem', GROUP, 'engine.architecture', text, 'docker context use default', { architecture })];
}

/** Its API is Docker's, except for what older versions lack. */
function podman({ version, abilities }: EngineInfo): Finding {
  const facts = { version, rootless: abilities.rootless === true };
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 5 || (major === 5 && minor >= 1))
    return ok(GROUP, 'engine.podman', 'Podman has everything that is needed', facts);
  const text = `Podman ${version} cannot change the limits of a running sandbox; 5.1 and later can`;
  return faulty('warning', GROUP, 'engine.podman', text, installing('podman'), facts);
}

function storage({ abilities }: EngineInfo): Finding {
  const { cgroupVersion, storageDriver } = abilities;
  const facts = { cgroupVersion: cgroupVersion ?? null, storageDriver: storageDriver ?? null };
  if (storageDriver === 'vfs') {
    const text = 'storage driver vfs: every sandbox copies its whole image, which is slow and fills the disk';
    return faulty('warning', GROUP, 'engine.storage', text, installing('fuse-overlayfs'), facts);
  }
  return ok(GROUP, 'engine.storage', `cgroups v${cgroupVersion ?? '?'}, storage driver ${storageDriver ?? '?'}`, facts);
}

const NAMES = {
  cpus: 'CPUs',
  memoryMb: 'memory',
  pids: 'processes',
  workspaceMb: 'workspace',
  openFiles: 'open files',
};

export function limitsText(limits: EngineInfo['limits']): string {
  const by = { enforced: 'by the kernel', watched: 'by the guest', none: 'not enforced' };
  return (['enforced', 'watched', 'none'] as const)
    .map((how) => [how, Object.entries(NAMES).filter(([key]) => limits[key as keyof typeof NAMES] === how)] as const)
    .filter(([, names]) => names.length > 0)
    .map(([how, names]) => `${names.map(([, name]) => name).join(', ')} ${by[how]}`)
    .join('; ');
}

function limits(info: EngineInfo): Finding {
  const text = `limits: ${limitsText(info.limits)}`;
  if (!Object.values(info.limits).includes('none')) return ok(GROUP, 'engine.limits', text, info.limits);
  const { rootless, cgroupVersion } = info.abilities;
  const delegate =
    `${asRoot('mkdir')} -p /etc/systemd/system/user@.service.d && ` +
    `printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | ${asRoot('tee')} /etc/systemd/system/user@.service.d/delegate.conf && ` +
    asRoot('systemctl daemon-reload');
  const forRootless = cgroupVersion === '2' ? delegate : bootingWith('systemd.unified_cgroup_hierarchy=1');
  const forMemory = bootingWith('cgroup_enable=memory swapaccount=1');
  const forOthers = bootingWith('systemd.unified_cgroup_hierarchy=1');
  const forRoot = info.limits.memoryMb === 'none' ? forMemory : forOthers;
  const cure = rootless ? forRootless : forRoot;
  return faulty('warning', GROUP, 'engine.limits', text, cure, info.limits);
}

function security(info: EngineInfo): Finding {
  const { seccomp, apparmor, userns, rootless } = info.abilities;
  const facts = { seccomp, apparmor, usernsRemap: userns, rootless };
  const words = [
    seccomp ? 'seccomp' : 'no seccomp',
    apparmor ? 'AppArmor' : 'no AppArmor',
    ...(userns ? ['user namespaces'] : []),
    ...(rootless ? ['rootless'] : []),
  ].join(', ');
  if (seccomp) return ok(GROUP, 'engine.security', `security: ${words}`, facts);
  const text = `security: ${words}: system calls of sandboxes are not filtered`;
  // With jq, not sed: a comma left over would keep the engine from starting.
  const [from, to] = ['/etc/docker/daemon.json', '/tmp/daemon.json'];
  const docker = `jq 'del(."seccomp-profile")' ${from} > ${to} && ${asRoot(`cp ${to} ${from}`)} && ${service('restart', 'docker')}`;
  const podman = asRoot("sed -i '/^ *seccomp_profile/d' /etc/containers/containers.conf");
  return faulty('warning', GROUP, 'engine.security', text, isPodman(info) ? podman : docker, facts);
}
