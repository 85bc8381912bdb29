import { backendOf } from './internal/backend';
import type { NativeManager, NativeManagerOptions } from './internal/binding';
import { abortable, type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { leaseFromEnvironment } from './internal/environment';
import { endAtExit } from './internal/exit';
import { toEngineInfo, toSandboxEvent, toSandboxInfo } from './internal/info';
import { Journal } from './internal/journal';
import { addon } from './internal/native';
import { merge, toNativeLimits, toNativeOpen, toNativeScope, toNativeTls, toNativeWarm } from './internal/open';
import { reporting } from './internal/progress';
import { RUN_TIMEOUT_MS, runStreaming, toNativeRun, toRunResult } from './internal/run';
import { toNativeStore } from './internal/store';
import { type Activity, runOutcome, Telemetry, telemetryFor, timeoutSeconds } from './internal/telemetry';
import type {
  EngineInfo,
  EventsOptions,
  OpenOptions,
  PruneOptions,
  PruneReport,
  PullOptions,
  PullProgress,
  RunRequest,
  RunResult,
  SandboxEvent,
  SandboxFilter,
  SandboxInfo,
  SandboxManagerOptions,
  Scope,
} from './options';
import { Sandbox } from './sandbox';

/**
 * Opens sandboxes, finds them and closes them. Cheap to create: it connects on first use.
 *
 * @example
 * ```ts
 * await using manager = new SandboxManager();
 * const sandbox = await manager.open({ image: 'python', scope: { workflow: 'wf_abc123' } });
 * ```
 */
export class SandboxManager implements AsyncDisposable {
  /** Whether it has a `store`, for `sandbox.stage()` and `sandbox.publish()`. */
  readonly hasStore: boolean;
  readonly #native: NativeManager;
  readonly #options: SandboxManagerOptions;
  readonly #defaults: OpenOptions;
  readonly #forgetExit: () => void;
  readonly #telemetry: Telemetry;
  readonly #journal: Journal;

  constructor(options?: SandboxManagerOptions);
  /** @internal `connect` replaces the addon's constructor. */
  constructor(options: SandboxManagerOptions, connect: (options: NativeManagerOptions) => NativeManager);
  constructor(
    options: SandboxManagerOptions = {},
    connect = (native: NativeManagerOptions): NativeManager => new (addon().NativeManager)(native),
  ) {
    const { docker = {}, policy = {} } = options;
    if (policy.network !== undefined && policy.network !== 'allow' && policy.network !== 'deny') {
      throw check.invalid('policy.network', '"allow" or "deny"', policy.network);
    }
    if (policy.allowedImages !== undefined && !Array.isArray(policy.allowedImages)) {
      throw check.invalid('policy.allowedImages', 'an array of names', policy.allowedImages);
    }
    const lease = leaseFromEnvironment(process.env);
    this.#options = options;
    this.#defaults = options.defaults ?? {};
    this.hasStore = options.store !== undefined;
    this.#telemetry = telemetryFor(this, new Telemetry(options.telemetry));
    this.#journal = new Journal(options.logger);
    this.#native = connect({
      backend: backendOf(options.backend, docker.host ?? docker.runtime, process.env),
      dockerHost: check.optionalText('docker.host', docker.host),
      dockerTls: docker.tls && toNativeTls(docker.tls),
      dockerRuntime: check.optionalText('docker.runtime', docker.runtime),
      allowedImages: policy.allowedImages?.map((image) => check.text('policy.allowedImages', image)),
      maxLimits: toNativeLimits('policy.maxLimits', policy.maxLimits),
      denyNetwork: policy.network === 'deny',
      blockedPaths: check.list('policy.blockedPaths', policy.blockedPaths),
      maxFileBytes: check.optionalCount('policy.maxFileBytes', policy.maxFileBytes),
      maxFiles: check.optionalCount('policy.maxFiles', policy.maxFiles),
      idleTimeoutMs: check.timeout('idleTimeoutMs', options.idleTimeoutMs ?? lease.idleTimeoutMs) ?? 0,
      maxLifetimeMs: check.timeout('maxLifetimeMs', options.maxLifetimeMs ?? lease.maxLifetimeMs) ?? 0,
      orphanTimeoutMs: check.timeout('orphanTimeoutMs', options.orphanTimeoutMs ?? lease.orphanTimeoutMs) ?? 0,
      warm: toNativeWarm(this.#defaults, options.warm),
      store: options.store === undefined ? undefined : toNativeStore(options.store, process.env),
    });
    this.#forgetExit = endAtExit(this.#native);
    this.#journal.follow(() => this.#native.events());
    // Only once the caller has had a chance to listen.
    queueMicrotask(() => this.#native.warmUp());
  }

  /** @internal Whether a session of this name is never shared. */
  isIsolated(session: string): boolean {
    return this.#native.isIsolated(session);
  }

  /** @internal A manager like this one whose calls to the addon go through `view`. */
  seenThrough(view: (native: NativeManager) => NativeManager): SandboxManager {
    return new SandboxManager({ ...this.#options, logger: undefined }, () => view(this.#native));
  }

  /**
   * Returns the session's sandbox, or creates it; `created` tells which. All callers of one key get the same sandbox.
   *
   * @example
   * ```ts
   * const sandbox = await manager.open({ scope: { workflow: 'wf_abc123' }, image: 'python', limits: { memoryMb: 512 } });
   * console.log(sandbox.created ? 'new' : 'resumed');
   * ```
   */
  async open(options: OpenOptions = {}): Promise<Sandbox> {
    const site = callSite(this.open);
    await call(site, async () => check.object('options', options));
    const merged = merge(this.#defaults, options);
    const open = async () =>
      reporting(site, merged.signal, merged.onPullProgress, async (cancel, report) => {
        const opened = await this.#native.open(toNativeOpen(merged), report, cancel);
        return new Sandbox(opened, this.#telemetry);
      });
    return this.#telemetry.observed(
      () => toOpening(merged),
      open,
      ({ id, key, image, created }) => ({
        attributes: { 'sandbox.id': id, 'sandbox.key': key, 'sandbox.image': image, 'sandbox.created': created },
        labels: { image, created },
      }),
    );
  }

  /**
   * Returns a sandbox by its id, also one that another program opened.
   *
   * @example
   * ```ts
   * const sandbox = await manager.get('sbx_0123456789abcdef');
   * ```
   */
  async get(id: string): Promise<Sandbox> {
    return call(
      callSite(this.get),
      async () => new Sandbox(await this.#native.get(check.text('id', id)), this.#telemetry),
    );
  }

  /**
   * Lists all sandboxes on the engine, oldest first, whoever created them; also stopped ones, of which only the
   * persistent workspace is left. If this manager has not opened a sandbox, its `limits` and `expiresAt` are those of its
   * creation.
   *
   * @example
   * ```ts
   * for (const { key, state } of await manager.list({ scope: { workflow: 'wf_abc123' } })) console.log(key, state);
   * ```
   */
  async list(filter: SandboxFilter = {}): Promise<SandboxInfo[]> {
    const found = await call(callSite(this.list), async () =>
      this.#native.list(filter.scope === undefined ? undefined : toNativeScope(filter.scope)),
    );
    return found.map(toSandboxInfo).filter(({ state }) => filter.state === undefined || state === filter.state);
  }

  /**
   * Closes all sessions of a workflow, an agent run or a user, whoever opened them. Persistent workspaces stay.
   *
   * @example
   * ```ts
   * const { closed } = await manager.endScope({ workflow: 'wf_abc123' });
   * ```
   */
  async endScope(scope: Scope): Promise<{ closed: number }> {
    const site = callSite(this.endScope);
    const closed = await call(site, async () => {
      const native = toNativeScope(scope);
      if (Object.values(native).filter((part) => part !== undefined).length !== 1) {
        throw check.invalid('scope', 'one of workflow, agent or user', scope);
      }
      return this.#native.endScope(native);
    });
    return { closed };
  }

  /**
   * Removes what dead programs and older versions left: sandboxes that never started or did not remove themselves,
   * volumes of guests that no sandbox uses, and packages of images that no longer exist. A manager does this once by
   * itself, in the background of its first `open()`. It does not touch what belongs to a running program.
   *
   * @example
   * ```ts
   * const report = await manager.prune({ volumes: true, olderThanMs: 7 * 24 * 3_600_000, dryRun: true });
   * console.log(report.sandboxes.length, report.volumes.length);
   * ```
   */
  async prune(options: PruneOptions = {}): Promise<PruneReport> {
    return call(callSite(this.prune), async () =>
      this.#native.prune({
        volumes: check.boolean('volumes', options.volumes ?? false),
        packages: check.boolean('packages', options.packages ?? false),
        olderThanMs: check.millis('olderThanMs', options.olderThanMs ?? 0),
        dryRun: check.boolean('dryRun', options.dryRun ?? false),
      }),
    );
  }

  /**
   * Yields what happens to this manager's sandboxes from now on. Ends when the manager is closed. Slow readers lose
   * events; `missed` counts them.
   *
   * @example
   * ```ts
   * for await (const event of manager.events()) console.log(event.type, event.key);
   * ```
   */
  events(options: EventsOptions = {}): AsyncIterableIterator<SandboxEvent> {
    // Subscribes now, not at the first read, so that events in between are not lost.
    const stream = this.#native.events();
    const next = (signal?: AbortSignal) =>
      abortable(callSite(this.events), signal, (cancel) => stream.nextMany(cancel));
    return (async function* () {
      for (;;) {
        const events = await next(options.signal);
        if (events.length === 0) return;
        yield* events.map(toSandboxEvent);
      }
    })();
  }

  /**
   * Runs a program in a sandbox of its own, which is removed afterwards, whatever happens. A program that fails, is
   * killed or times out resolves with its result. The manager's `defaults` apply, except the image and what concerns
   * sessions.
   *
   * @example
   * ```ts
   * const { stdout, artifacts } = await manager.run({
   *   runtime: 'python',
   *   code: 'import json; json.dump({"answer": 42}, open("out.json", "w"))',
   *   artifacts: ['*.json'],
   * });
   * ```
   */
  async run(request: RunRequest): Promise<RunResult> {
    const site = callSite(this.run);
    await call(site, async () => check.object('request', request));
    const run = () =>
      abortable(site, request.signal, async (cancel) => {
        const native = toNativeRun(this.#defaults, request);
        const isStreaming = request.onStdout !== undefined || request.onStderr !== undefined;
        const ran = isStreaming
          ? runStreaming(this.#native, native, request, cancel)
          : this.#native.run(native, cancel);
        return toRunResult(native.runtime, await ran);
      });
    return this.#telemetry.observed(
      () => toRunning(request),
      () => this.#journal.run(request, run),
      runOutcome,
    );
  }

  /**
   * Pulls an image; yields each step.
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

  /**
   * Returns what sandboxes run on, and what it can and cannot do on this machine.
   *
   * @example
   * ```ts
   * const { backend, version, limits } = await manager.info();
   * if (limits.memoryMb !== 'enforced') console.warn(`${backend} ${version} does not enforce memory limits here`);
   * ```
   */
  async info(): Promise<EngineInfo> {
    return call(callSite(this.info), async () => toEngineInfo(await this.#native.info()));
  }

  /**
   * Closes every sandbox that this manager created; persistent workspaces stay. Afterwards it no longer keeps the program
   * alive. Idempotent.
   *
   * @example
   * ```ts
   * const manager = new SandboxManager();
   * try {
   *   await manager.open();
   * } finally {
   *   await manager.close(); // `await using` does this for you
   * }
   * ```
   */
  async close(): Promise<void> {
    this.#forgetExit();
    await call(callSite(this.close), () => this.#native.close());
    await this.#journal.finish();
  }

  /** Same as {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function toOpening({ image, timeoutMs }: OpenOptions): Activity {
  const attributes = { ...(image === undefined ? {} : { 'sandbox.image': image }), ...timeoutSeconds(timeoutMs) };
  return { kind: 'open', name: 'sandbox.open', labels: { image }, attributes };
}

function toRunning({ runtime = 'python', image = runtime, timeoutMs = RUN_TIMEOUT_MS }: RunRequest): Activity {
  const attributes = { 'sandbox.runtime': runtime, 'sandbox.image': image, ...timeoutSeconds(timeoutMs) };
  return { kind: 'run', name: 'sandbox.run', labels: { runtime }, attributes };
}
