/** The container engine: found or not and how, what it is, and what it can do. */
import { SandboxError } from '../../errors';
import type { EngineAttempt, EngineInfo } from '../../options';
import { cureOf, cureOfNoEngine } from './engine-cure';
import { type Finding, ok, unwell } from './finding';
import { asRoot, bootingWith, installing, service } from './machine';
import { TookTooLong } from './time-limit';

const GROUP = 'Engine';

/** How a place came to be tried, in words. */
function saidBy(source: string): string {
  if (source === 'option') return 'as --host says';
  if (source === 'DOCKER_HOST') return 'as DOCKER_HOST says';
  if (source.startsWith('context ')) return `as the docker ${source} says`;
  return 'where engines usually are';
}

export function engineFound(info: EngineInfo): Finding[] {
  const { abilities, version, apiVersion, tried = [] } = info;
  const { host = '', foundBy = 'default', operatingSystem } = abilities;
  const product = isPodman(info) ? 'Podman' : 'Docker';
  const on = operatingSystem ? ` on ${operatingSystem}` : '';
  const found = `${product} ${version}${on} at ${host}, ${saidBy(String(foundBy))}`;
  const facts = { product: product.toLowerCase(), version, host, foundBy, warnings: abilities.warnings ?? null };
  return [
    ok(GROUP, 'engine', found, facts),
    ...tried.map((attempt, index) => failedAttempt('warning', `engine.tried.${index + 1}`, attempt)),
    ok(GROUP, 'engine.api', `API ${apiVersion}; 1.41 is the oldest that will do`, { apiVersion, oldest: '1.41' }),
    ...foreign(info),
    ...(isPodman(info) ? [podman(info)] : []),
    ground(info),
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
    return [unwell(state, GROUP, 'engine', error.message, service('restart', 'docker'))];
  const tried = attemptsOf(error);
  if (tried.length > 0) {
    return tried.map((attempt, index) =>
      failedAttempt(state, index === 0 ? 'engine' : `engine.tried.${index + 1}`, attempt),
    );
  }
  const text =
    error instanceof SandboxError && error.code === 'ENGINE_UNAVAILABLE'
      ? 'no container engine was found: none is named by DOCKER_HOST or a docker context, and no known socket is there'
      : (error as Error).message;
  return [unwell(state, GROUP, 'engine', text, cureOfNoEngine(), { tried })];
}

export function attemptsOf(error: unknown): EngineAttempt[] {
  if (!(error instanceof SandboxError)) return [];
  return Array.isArray(error.details.tried) ? (error.details.tried as EngineAttempt[]) : [];
}

const CAUSES: Partial<Record<EngineAttempt['reason'], string>> = {
  denied: 'this user may not open its socket',
  refused: 'nothing listens there: the engine does not run, or it is somewhere else',
  missing: 'there is no such socket: the engine does not run, or it is somewhere else',
  unresolved: 'no machine has that name',
  'bad-address': 'that is not an address of an engine; those begin with unix://, tcp:// or ssh://',
  'not-an-engine': 'what answers there is not a container engine',
};

function failedAttempt(state: 'warning' | 'problem', id: string, attempt: EngineAttempt): Finding {
  const { host, source, reason, problem } = attempt;
  const cause = CAUSES[reason];
  const text = `the engine at ${host} (${saidBy(source)}) cannot be used: ${cause ?? problem}`;
  return unwell(state, GROUP, id, text, cureOf(attempt), { ...attempt });
}

export function isPodman({ abilities }: EngineInfo): boolean {
  return abilities.product === 'podman';
}

/** Engines on which no sandbox of ours can run. */
function foreign({ abilities }: EngineInfo): Finding[] {
  const { osType = 'linux', architecture } = abilities;
  if (osType !== 'linux') {
    const text = `the engine runs ${osType} containers, and sandboxes are Linux`;
    const cure = '& "$Env:ProgramFiles\\Docker\\Docker\\DockerCli.exe" -SwitchLinuxEngine';
    return [unwell('problem', GROUP, 'engine.os', text, cure, { osType })];
  }
  if (['amd64', 'x86_64', 'arm64', 'aarch64'].includes(String(architecture))) return [];
  const text = `the engine's machine is ${architecture}, and sandboxes run on x64 and arm64`;
  return [unwell('problem', GROUP, 'engine.architecture', text, 'docker context use default', { architecture })];
}

/** Its API is Docker's, but for what the older ones lack. */
function podman({ version, abilities }: EngineInfo): Finding {
  const facts = { version, rootless: abilities.rootless === true };
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 5 || (major === 5 && minor >= 1))
    return ok(GROUP, 'engine.podman', 'it is Podman, with all we need', facts);
  const text = `it is Podman ${version}, which cannot change the limits of a running sandbox; 5.1 and later can`;
  return unwell('warning', GROUP, 'engine.podman', text, installing('podman'), facts);
}

function ground({ abilities }: EngineInfo): Finding {
  const { cgroupVersion, storageDriver } = abilities;
  const facts = { cgroupVersion: cgroupVersion ?? null, storageDriver: storageDriver ?? null };
  if (storageDriver === 'vfs') {
    const text = 'storage driver vfs: every sandbox copies its whole image, which is slow and fills the disk';
    return unwell('warning', GROUP, 'engine.storage', text, installing('fuse-overlayfs'), facts);
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
  const by = { enforced: 'by the kernel', watched: 'by the guest', none: 'not kept' };
  return (['enforced', 'watched', 'none'] as const)
    .map((how) => [how, Object.entries(NAMES).filter(([key]) => limits[key as keyof typeof NAMES] === how)] as const)
    .filter(([, kept]) => kept.length > 0)
    .map(([how, kept]) => `${kept.map(([, name]) => name).join(', ')} ${by[how]}`)
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
  return unwell('warning', GROUP, 'engine.limits', text, cure, info.limits);
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
  // By a program that knows JSON: a line less, and the comma before it would keep the engine from starting.
  const [from, to] = ['/etc/docker/daemon.json', '/tmp/daemon.json'];
  const docker = `jq 'del(."seccomp-profile")' ${from} > ${to} && ${asRoot(`cp ${to} ${from}`)} && ${service('restart', 'docker')}`;
  const podman = asRoot("sed -i '/^ *seccomp_profile/d' /etc/containers/containers.conf");
  return unwell('warning', GROUP, 'engine.security', text, isPodman(info) ? podman : docker, facts);
}
