/** Converts the options of a manager and of `open()` to the addon's form. */
import { SandboxError } from '../errors';
import type { Limits, OpenOptions, Packages, TlsOptions } from '../options';
import type { NativeLimits, NativeOpen, NativePackages, NativeScope, NativeWarm } from './binding';
import * as check from './check';
import { toNativeNetwork } from './network';

const MAX_WARM = 64;

export function merge(defaults: OpenOptions, options: OpenOptions): OpenOptions {
  return {
    ...defaults,
    ...options,
    env: { ...defaults.env, ...options.env },
    limits: { ...defaults.limits, ...options.limits },
    labels: { ...defaults.labels, ...options.labels },
    files: { ...defaults.files, ...options.files },
  };
}

export function toNativeTls({ ca, cert, key }: TlsOptions): TlsOptions {
  return {
    ca: check.text('docker.tls.ca', ca),
    cert: check.text('docker.tls.cert', cert),
    key: check.text('docker.tls.key', key),
  };
}

export function toNativeScope(scope: NonNullable<OpenOptions['scope']>): NativeScope {
  check.object('scope', scope);
  return {
    workflow: check.optionalText('scope.workflow', scope.workflow),
    agent: check.optionalText('scope.agent', scope.agent),
    user: check.optionalText('scope.user', scope.user),
  };
}

export function toNativeLimits(name: string, limits: Limits = {}): NativeLimits {
  const number = (key: keyof Limits): number | undefined => {
    const value = limits[key];
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || Number.isNaN(value)) throw check.invalid(`${name}.${key}`, 'a number', value);
    return value;
  };
  return {
    cpus: number('cpus'),
    memoryMb: number('memoryMb'),
    pids: number('pids'),
    workspaceMb: number('workspaceMb'),
    openFiles: number('openFiles'),
  };
}

/** The warm pool: what an `open()` with the defaults and this image would create. */
export function toNativeWarm(defaults: OpenOptions, warm: Record<string, number> = {}): NativeWarm[] {
  check.object('warm', warm);
  return Object.entries(warm).map(([image, count]) => {
    if (check.count(`warm.${image}`, count) > MAX_WARM)
      throw check.invalid(`warm.${image}`, `at most ${MAX_WARM}`, count);
    if (defaults.persist) {
      const message =
        'warm sandboxes cannot have a persistent workspace: remove defaults.persist, and pass persist: true to open()';
      throw new SandboxError('INVALID_ARGUMENT', message);
    }
    return { open: toNativeOpen(merge(defaults, { image })), count };
  });
}

function toNativePackages(packages: Packages = {}): NativePackages {
  const known = ['pip', 'npm', 'apt'];
  const other = Object.keys(check.object('packages', packages)).find((name) => !known.includes(name));
  if (other !== undefined) throw check.invalid('a key of packages', '"pip", "npm" or "apt"', other);
  return {
    pip: check.list('packages.pip', packages.pip),
    npm: check.list('packages.npm', packages.npm),
    apt: check.list('packages.apt', packages.apt),
  };
}

export function toNativeOpen(options: OpenOptions): NativeOpen {
  const { scope = {}, network = false, pull = 'missing' } = options;
  check.optionalFunction('onPullProgress', options.onPullProgress);
  if (!['missing', 'always', 'never'].includes(pull)) {
    throw check.invalid('pull', '"missing", "always" or "never"', pull);
  }
  return {
    scope: toNativeScope(scope),
    session: check.text('session', options.session ?? 'default'),
    image: check.optionalText('image', options.image),
    workdir: check.optionalText('workdir', options.workdir),
    env: check.texts('env', options.env),
    user: check.optionalText('user', options.user),
    limits: toNativeLimits('limits', options.limits),
    network: toNativeNetwork(network),
    readOnlyRoot: check.boolean('readOnlyRoot', options.readOnlyRoot ?? false),
    persist: check.boolean('persist', options.persist ?? false),
    labels: check.texts('labels', options.labels),
    packages: toNativePackages(options.packages),
    files: Object.entries(options.files ?? {}).map(([path, data]) => ({
      path: check.text('a path of files', path),
      data: check.bytes(`files[${JSON.stringify(path)}]`, data),
    })),
    init: options.init === undefined ? undefined : check.command(options.init),
    pull,
    timeoutMs: check.timeout('timeoutMs', options.timeoutMs),
  };
}
