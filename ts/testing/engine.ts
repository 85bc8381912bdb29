/** Replaces the addon: sessions by key, in memory. */
import { randomBytes } from 'node:crypto';
import { SandboxError } from '../errors';
import type * as Native from '../internal/binding';
import { DEFAULT_IMAGE, IMAGE_SHORTCUTS } from '../internal/images';
import { packageVersion } from '../internal/package';
import { type FakeCall, toCall } from './calls';
import { escaped, ISOLATED, isIsolated, toKey } from './key';
import { nativeProxy, unlessCancelled } from './native-proxy';
import { pathTest } from './patterns';
import { FakeProcess } from './process';
import { Rulebook } from './rules';
import { FakeSandbox, sandboxClosed } from './sandbox';
import type { FakeScript } from './script';

const MAIN = { python: ['python', 'main.py'], node: ['node', 'main.js'], bash: ['bash', 'main.sh'] } as const;

/** Policies that the fake does not implement. */
const UNSUPPORTED_POLICIES = ['maxFileBytes', 'maxFiles'] as const;

export class FakeEngine implements Partial<Native.NativeManager> {
  readonly calls: FakeCall[] = [];
  readonly rules: Rulebook;
  readonly #script: FakeScript;
  readonly #options: Native.NativeManagerOptions;
  readonly #owner = randomBytes(12).toString('hex');
  readonly #sandboxes = new Map<string, FakeSandbox>();
  /** Sandboxes whose init still runs; other callers of open() wait for it too. */
  readonly #opening = new Map<string, Promise<void>>();
  readonly #listeners = new Set<Listener>();
  readonly #objects: Map<string, Buffer> | undefined;
  #isClosed = false;

  constructor(script: FakeScript, options: Native.NativeManagerOptions, hasStore: boolean) {
    for (const name of UNSUPPORTED_POLICIES) {
      if (options[name] !== undefined) throw unsupported(`policy.${name}`);
    }
    if (options.blockedPaths.length > 0) throw unsupported('policy.blockedPaths');
    if (Object.values(options.maxLimits).some((limit) => limit !== undefined)) throw unsupported('policy.maxLimits');
    this.#script = script;
    this.#options = options;
    this.rules = new Rulebook(script);
    const objects = Object.entries(script.objects ?? {});
    if (hasStore || script.objects) this.#objects = new Map(objects.map(([key, data]) => [key, Buffer.from(data)]));
  }

  get unscripted(): readonly string[] {
    return this.rules.unscripted;
  }

  /** Looks like the addon's own class. */
  asNative(): Native.NativeManager {
    return nativeProxy<Native.NativeManager>(this as Partial<Native.NativeManager>, 'manager', (method, args) => {
      const call = toCall(null, method, args);
      if (call) this.calls.push(call);
      const isQuiet = ['close', 'exit', 'warmUp', 'events', 'isIsolated'].includes(method);
      if (this.#isClosed && !isQuiet)
        throw new SandboxError('SANDBOX_CLOSED', 'this manager was closed; make a new one');
    });
  }

  #handle(sandbox: FakeSandbox, created: boolean): Native.NativeSandbox {
    const onCall = (method: string, args: unknown[]) => {
      const call = toCall(sandbox.key, method, args);
      if (call) this.calls.push(call);
      if (sandbox.isClosed && method !== 'close') throw sandboxClosed(sandbox.id, { sent: false });
    };
    return nativeProxy<Native.NativeSandbox>(sandbox, 'sandbox', onCall, { created });
  }

  #emit(type: string, sandbox: FakeSandbox | undefined, details: Record<string, unknown> = {}): void {
    const about = sandbox && { sandboxId: sandbox.id, key: sandbox.key };
    for (const listener of this.#listeners)
      listener.push({ type, atMs: Date.now(), ...about, details: JSON.stringify(details) });
  }

  #make(scope: string, session: string, image: string, order: Native.NativeOpen): FakeSandbox {
    const context = {
      rules: this.rules,
      objects: this.#objects,
      emit: (type: string, sandbox: FakeSandbox, details?: Record<string, unknown>) =>
        this.#emit(type, sandbox, details),
      closed: (sandbox: FakeSandbox) => void this.#sandboxes.delete(sandbox.key),
    };
    return new FakeSandbox({ scope, session }, image, order, context, this.#script.files ?? {});
  }

  #image(order: Native.NativeOpen): string {
    const name = order.image ?? DEFAULT_IMAGE;
    const image = IMAGE_SHORTCUTS[name] ?? name;
    const { allowedImages, denyNetwork } = this.#options;
    if (
      allowedImages &&
      !allowedImages.some((each) => [name, image].some((one) => each === one || pathTest([each], false)(one, false)))
    ) {
      const message = `image "${image}" is not among the allowed ones: ${allowedImages.join(', ')}`;
      throw new SandboxError('IMAGE_NOT_ALLOWED', message, { image });
    }
    if (order.network !== 'off' && denyNetwork)
      throw new SandboxError('POLICY_DENIED', 'the policy of this manager denies network');
    return image;
  }

  async open(order: Native.NativeOpen, _onPull?: unknown, cancel?: unknown): Promise<Native.NativeSandbox> {
    const scope = namespace(order.scope, this.#owner);
    const session = sessionName(order.session);
    const key = toKey(scope, session);
    const image = this.#image(order);
    const existing = this.#sandboxes.get(key);
    if (existing) {
      if (order.image !== undefined && existing.image !== image) {
        const what = `session ${key} is open with image "${existing.image}", not "${image}"`;
        const todo = 'close it first, or give this one another session name';
        throw new SandboxError('INVALID_ARGUMENT', `${what}; ${todo}`, { image: existing.image });
      }
      await this.#opening.get(key);
      this.#emit('resumed', existing, { image });
      return this.#handle(existing, false);
    }
    const sandbox = this.#make(scope, session, image, order);
    this.#sandboxes.set(key, sandbox);
    this.#emit('opened', sandbox, { image });
    if (order.init !== undefined) {
      const opening = unlessCancelled(this.#init(sandbox, order.init), cancel, () => sandbox.end('closed'));
      this.#opening.set(key, opening);
      await opening.finally(() => this.#opening.delete(key));
    }
    return this.#handle(sandbox, true);
  }

  async #init(sandbox: FakeSandbox, command: string | string[]): Promise<void> {
    try {
      const { exitCode, stderr, stdout } = await sandbox.exec(plainCommand(command));
      if (exitCode === 0) return;
      const message = `init ended with exit code ${exitCode}: ${stderr || stdout}`;
      throw new SandboxError('INVALID_ARGUMENT', message, { exitCode, stdout, stderr });
    } catch (error) {
      sandbox.end('closed');
      throw error;
    }
  }

  async get(id: string): Promise<Native.NativeSandbox> {
    const found = [...this.#sandboxes.values()].find((sandbox) => sandbox.id === id);
    if (found) return this.#handle(found, false);
    throw new SandboxError(
      'SANDBOX_NOT_FOUND',
      `there is no sandbox "${id}" on this engine; list() gives those there are`,
      { id },
    );
  }

  #within(scope?: Native.NativeScope | null): FakeSandbox[] {
    const all = [...this.#sandboxes.values()];
    return scope ? all.filter(({ key }) => key.startsWith(`${namespace(scope, this.#owner)}:`)) : all;
  }

  isIsolated(session: string): boolean {
    return isIsolated(session);
  }

  async list(scope?: Native.NativeScope | null): Promise<Native.NativeSandboxInfo[]> {
    return Promise.all(this.#within(scope).map((sandbox) => sandbox.info()));
  }

  async endScope(scope: Native.NativeScope): Promise<number> {
    const over = this.#within(scope);
    for (const sandbox of over) sandbox.end('scope-ended');
    return over.length;
  }

  run(run: Native.NativeRun, cancel?: unknown): Promise<Native.NativeRunResult> {
    return this.#run(run, cancel, () => {});
  }

  async runStreaming(run: Native.NativeRun, cancel?: unknown): Promise<Native.NativeRunning> {
    let begin: (process: FakeProcess | null) => void = () => {};
    const begun = new Promise<FakeProcess | null>((resolve) => {
      begin = resolve;
    });
    const result = this.#run(run, cancel, (process) => begin(process)).finally(() => begin(null));
    result.catch(() => {});
    return { program: () => begun as Promise<Native.NativeProcess | null>, result: () => result };
  }

  async #run(
    run: Native.NativeRun,
    cancel: unknown,
    begun: (process: FakeProcess) => void,
  ): Promise<Native.NativeRunResult> {
    const { runtime, code, args, maxOutputBytes, timeoutMs, artifacts, maxArtifactBytes, maxArtifacts } = run;
    const order = { ...run.open, image: run.open.image ?? runtime };
    const sandbox = this.#make(`manager:${this.#owner}`, sessionName('isolated'), this.#image(order), order);
    const rule = this.rules.forRun({ runtime, code, args, files: sandbox.files });
    const began = performance.now();
    try {
      const command = { ...plainCommand([...MAIN[runtime], ...args]), maxOutputBytes, timeoutMs };
      sandbox.disk.write({ path: MAIN[runtime][1] }, Buffer.from(code));
      const process = new FakeProcess(1, command);
      sandbox.begin(process, rule.answer ? rule.answer({ runtime, code, args, files: sandbox.files }) : rule);
      begun(process);
      const exec = await unlessCancelled(process.ended, cancel, () => process.kill());
      const durationMs = performance.now() - began;
      const scope = { path: '.', exclude: [], gitignore: false, hidden: true };
      const search = { scope, patterns: artifacts, maxResults: 10_000 };
      const found =
        artifacts.length > 0 ? (await sandbox.glob(search)).entries.filter(({ fileType }) => fileType === 'file') : [];
      return {
        exec,
        image: sandbox.image,
        artifacts: found.map(({ path: absolute, sizeBytes }, index): Native.NativeArtifact => {
          const path = absolute.slice(sandbox.workdir.length + 1);
          if (index >= maxArtifacts) return { path, sizeBytes, omitted: 'too many' };
          if (sizeBytes > maxArtifactBytes) return { path, sizeBytes, omitted: 'too large' };
          return { path, sizeBytes, content: sandbox.disk.read(absolute).bytes };
        }),
        phases: (['connect', 'prepare_files', 'exec', 'collect_artifacts', 'destroy'] as const).map((name) => ({
          name,
          durationMs: name === 'exec' ? durationMs : 0,
        })),
      };
    } finally {
      sandbox.end('closed');
    }
  }

  async info(): Promise<Native.NativeEngineInfo> {
    const limits = { cpus: 'none', memoryMb: 'none', pids: 'none', workspaceMb: 'none', openFiles: 'none' } as const;
    return { backend: 'fake', version: packageVersion(), abilities: '{}', limits, tried: [] };
  }

  warmUp(): void {}

  exit(): void {}

  events(): Native.NativeEvents {
    const listener = new Listener();
    if (this.#isClosed) listener.end();
    else this.#listeners.add(listener);
    return listener;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const sandbox of [...this.#sandboxes.values()]) sandbox.end('manager-closed');
    for (const listener of this.#listeners) listener.end();
  }
}

class Listener implements Native.NativeEvents {
  #waiting: Native.NativeEvent[] = [];
  #isOver = false;
  #wake = () => {};

  push(event: Native.NativeEvent): void {
    this.#waiting.push(event);
    this.#wake();
  }

  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  nextMany(cancel?: Native.Cancel | null): Promise<Native.NativeEvent[]> {
    const take = () => this.#waiting.splice(0);
    if (this.#waiting.length > 0 || this.#isOver) return Promise.resolve(take());
    const changed = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    return unlessCancelled(changed, cancel).then(take);
  }
}

function unsupported(name: string): SandboxError {
  return new SandboxError('UNSUPPORTED', `the fake manager does not implement ${name}; use a real manager to test it`);
}

function namespace({ workflow, agent, user }: Native.NativeScope, owner: string): string {
  const [kind, id] =
    workflow !== undefined
      ? ['workflow', workflow]
      : agent !== undefined
        ? ['agent', agent]
        : user !== undefined
          ? ['user', user]
          : ['manager', owner];
  if (id === '') throw new SandboxError('INVALID_ARGUMENT', `${kind} must have 1 to 512 bytes, not 0`);
  return `${kind}:${escaped(id)}`;
}

function sessionName(session: string): string {
  if (session === '') throw new SandboxError('INVALID_ARGUMENT', 'session must have 1 to 512 bytes, not 0');
  return session === ISOLATED ? `${ISOLATED}-${randomBytes(12).toString('hex')}` : session;
}

function plainCommand(command: string | string[]): Native.NativeCommand {
  return { command, env: [], killGraceMs: 0, maxOutputBytes: 1024 * 1024, detached: false, keepStdin: false };
}
