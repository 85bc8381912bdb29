import { SandboxError } from './errors';
import type { NativeLimits, NativeManager, NativeOpen, NativeScope } from './internal/binding';
import { abortable, type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { toEngineInfo, toSandboxInfo } from './internal/info';
import { native } from './internal/native';
import type {
  EngineInfo,
  Limits,
  OpenOptions,
  PullOptions,
  PullProgress,
  SandboxInfo,
  SandboxManagerOptions,
  SandboxState,
  Scope,
  TlsOptions,
} from './options';
import { Sandbox } from './sandbox';

const MINUTE = 60_000;

/**
 * Opens sandboxes, finds them again and closes them. Cheap to make: it connects on first use.
 *
 * @example
 * ```ts
 * await using manager = new SandboxManager();
 * const sandbox = await manager.open({ image: 'python', scope: { workflow: 'wf_abc123' } });
 * ```
 */
export class SandboxManager implements AsyncDisposable {
  readonly #native: NativeManager;
  readonly #defaults: OpenOptions;

  constructor(options: SandboxManagerOptions = {}) {
    const { backend = 'auto', docker = {}, policy = {} } = options;
    if (backend !== 'auto' && backend !== 'docker') {
      throw new SandboxError('UNSUPPORTED', `backend ${JSON.stringify(backend)} is not built yet; use "docker"`, {
        backend,
      });
    }
    if (policy.network !== undefined && policy.network !== 'allow' && policy.network !== 'deny') {
      throw check.invalid('policy.network', '"allow" or "deny"', policy.network);
    }
    if (policy.allowedImages !== undefined && !Array.isArray(policy.allowedImages)) {
      throw check.invalid('policy.allowedImages', 'an array of names', policy.allowedImages);
    }
    this.#defaults = options.defaults ?? {};
    this.#native = new native.NativeManager({
      dockerHost: check.optionalText('docker.host', docker.host),
      dockerTls: docker.tls && toNativeTls(docker.tls),
      dockerRuntime: check.optionalText('docker.runtime', docker.runtime),
      allowedImages: policy.allowedImages?.map((image) => check.text('policy.allowedImages', image)),
      maxLimits: toNativeLimits('policy.maxLimits', policy.maxLimits),
      denyNetwork: policy.network === 'deny',
      idleTimeoutMs: check.timeout('idleTimeoutMs', options.idleTimeoutMs ?? 30 * MINUTE) ?? 0,
      maxLifetimeMs: check.timeout('maxLifetimeMs', options.maxLifetimeMs ?? 240 * MINUTE) ?? 0,
      orphanTimeoutMs: check.timeout('orphanTimeoutMs', options.orphanTimeoutMs ?? 5 * MINUTE) ?? 0,
    });
  }

  /** Gets the session's sandbox, or makes it: `created` tells which. All callers of one key get the same one. */
  async open(options: OpenOptions = {}): Promise<Sandbox> {
    const site = callSite(this.open);
    await call(site, async () => check.object('options', options));
    const merged = merge(this.#defaults, options);
    return abortable(site, merged.signal, async (cancel) => {
      const opened = await this.#native.open(toNativeOpen(merged), merged.onPullProgress, cancel);
      return new Sandbox(opened);
    });
  }

  /** A sandbox by its id, also one that another program opened. */
  async get(id: string): Promise<Sandbox> {
    return call(callSite(this.get), async () => new Sandbox(await this.#native.get(check.text('id', id))));
  }

  /** All sandboxes on the engine, oldest first. */
  async list(filter: { scope?: Scope; state?: SandboxState } = {}): Promise<SandboxInfo[]> {
    const found = await call(callSite(this.list), async () =>
      this.#native.list(filter.scope === undefined ? undefined : toNativeScope(filter.scope)),
    );
    return found.map(toSandboxInfo).filter(({ state }) => filter.state === undefined || state === filter.state);
  }

  /**
   * Pulls an image, step by step.
   *
   * @example
   * ```ts
   * for await (const step of manager.pull('python')) console.log(step.layer, step.status);
   * ```
   */
  pull(image: string, options: PullOptions = {}): AsyncIterableIterator<PullProgress> {
    return this.#pull(callSite(this.pull), image, options);
  }

  async *#pull(site: CallSite, image: string, options: PullOptions): AsyncGenerator<PullProgress, undefined> {
    const pull = await call(site, async () => this.#native.pull(check.text('image', image)));
    for (;;) {
      const steps = await abortable(site, options.signal, (cancel) => pull.nextMany(cancel));
      if (steps.length === 0) return;
      yield* steps;
    }
  }

  /** What sandboxes run on, and what that can and cannot do here. */
  async info(): Promise<EngineInfo> {
    return call(callSite(this.info), async () => toEngineInfo(await this.#native.info()));
  }

  /** Closes every sandbox that this manager made. Afterwards nothing of it keeps the program alive. Twice is fine. */
  async close(): Promise<void> {
    return call(callSite(this.close), () => this.#native.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function merge(defaults: OpenOptions, options: OpenOptions): OpenOptions {
  return {
    ...defaults,
    ...options,
    env: { ...defaults.env, ...options.env },
    limits: { ...defaults.limits, ...options.limits },
    labels: { ...defaults.labels, ...options.labels },
    files: { ...defaults.files, ...options.files },
  };
}

function toNativeTls({ ca, cert, key }: TlsOptions): TlsOptions {
  return {
    ca: check.text('docker.tls.ca', ca),
    cert: check.text('docker.tls.cert', cert),
    key: check.text('docker.tls.key', key),
  };
}

function toNativeScope(scope: NonNullable<OpenOptions['scope']>): NativeScope {
  check.object('scope', scope);
  return {
    workflow: check.optionalText('scope.workflow', scope.workflow),
    agent: check.optionalText('scope.agent', scope.agent),
    user: check.optionalText('scope.user', scope.user),
  };
}

function toNativeLimits(name: string, limits: Limits = {}): NativeLimits {
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
    openFiles: number('openFiles'),
  };
}

function toNativeOpen(options: OpenOptions): NativeOpen {
  const { scope = {}, network = false, pull = 'missing' } = options;
  check.optionalFunction('onPullProgress', options.onPullProgress);
  if (typeof network !== 'boolean') check.object('network', network);
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
    network: check.boolean('network', typeof network === 'boolean' ? network : network.enabled),
    readOnlyRoot: check.boolean('readOnlyRoot', options.readOnlyRoot ?? false),
    labels: check.texts('labels', options.labels),
    files: Object.entries(options.files ?? {}).map(([path, data]) => ({
      path: check.text('a path of files', path),
      data: check.bytes(`files[${JSON.stringify(path)}]`, data),
    })),
    init: options.init === undefined ? undefined : check.command(options.init),
    pull,
    timeoutMs: check.timeout('timeoutMs', options.timeoutMs),
  };
}
