/**
 * Which sandboxes a toolset can reach, and the only way to them.
 *
 * Invariant: a model reaches the sandboxes that these tools opened and, in a scope, the other sessions of that scope. It
 * reaches nothing else, whatever name or id it passes. Without a scope, names belong to these tools: none leads to another
 * session of the manager.
 */
import { SandboxError } from '../errors';
import { unlessAborted } from '../internal/abort';
import type { SandboxManager } from '../manager';
import type { OpenOptions, SandboxInfo, Scope } from '../options';
import type { Sandbox } from '../sandbox';
import { during, HintedError } from './failure';
import { Opening } from './opening';
import type { ToolContext } from './toolset';

const MAX_SESSIONS = 10;

/** For how many commands the sandbox is remembered. */
const MAX_COMMANDS = 1_000;

/** A sandbox for one call, and whether it is new. */
export interface Reached {
  sandbox: Sandbox;
  /** It was created for this call. */
  created: boolean;
  /** It replaces a sandbox that these tools had before. */
  replaced: boolean;
}

interface Session {
  name: string;
  /** The name that the core gave it, where it is isolated. */
  isolatedName?: string;
  /** What the model chose, in place of the context's image. */
  image?: string;
  opening?: Opening<Reached>;
  sandbox?: Sandbox;
  /** How the sandbox was reached for the first time. */
  first?: Reached;
  /** There was a sandbox before, and the model may think that it still exists. */
  hadOne: boolean;
  /** Paths that were written through the tools. */
  written: Set<string>;
}

export class Sessions {
  readonly #manager: SandboxManager;
  readonly #context: ToolContext;
  /** All of the context's: which part counts, the core knows. */
  readonly #scope: Scope | undefined;
  /** The session of calls that name none. */
  readonly #usual: string;
  readonly #byName = new Map<string, Session>();
  /** By sandbox id and by session key, also of past sandboxes: a model may still use them. */
  readonly #byId = new Map<string, Session>();
  /** Where commands run, the oldest first. */
  readonly #commands = new Map<string, string>();

  constructor(manager: SandboxManager, context: ToolContext) {
    this.#manager = manager;
    this.#context = context;
    this.#scope = scopeOf(context);
    this.#usual = context.session ?? 'default';
  }

  /** The sandbox of a session by name, created if needed. Checks that a known one is alive. */
  async open(name: string | undefined, image?: string, signal?: AbortSignal): Promise<Reached> {
    const session = this.#named(name ?? this.#usual);
    if (session.sandbox && image === undefined && !(await isAlive(session.sandbox))) this.forget(session.sandbox);
    return this.#reach(session, image, signal);
  }

  /**
   * The sandbox with this id or session key, or that of the usual session. A known one is assumed to be alive: the call itself
   * finds out.
   */
  async reach(id: string | undefined, signal?: AbortSignal): Promise<Reached> {
    const session = id === undefined ? this.#named(this.#usual) : await this.#identified(id);
    return this.#reach(session, undefined, signal);
  }

  /** The sandbox that replaces one that is gone. Every call gets `replaced`, also those that did not open it. */
  async reachInstead(gone: Sandbox, signal?: AbortSignal): Promise<Reached> {
    const session = this.#byId.get(gone.id) ?? this.#named(this.#usual);
    this.forget(gone);
    const reached = await this.#reach(session, undefined, signal);
    return session.first?.sandbox === reached.sandbox ? session.first : reached;
  }

  /** A call found that the sandbox is gone: the next call opens the session again. */
  forget(gone: Sandbox): void {
    const session = this.#byId.get(gone.id);
    if (session?.sandbox === gone) session.sandbox = undefined;
  }

  /** As `reach`, but creates none: `undefined` when the session has no sandbox now. */
  async reachOpen(id: string | undefined): Promise<Sandbox | undefined> {
    const sandbox = await this.#known(id);
    return sandbox && (await isAlive(sandbox)) ? sandbox : undefined;
  }

  async #known(id: string | undefined): Promise<Sandbox | undefined> {
    const session = id === undefined ? await this.#usualIfThere() : await this.#identified(id);
    await session?.opening?.result.catch(() => {});
    return session?.sandbox;
  }

  /**
   * The sandbox of a command: the one with this id, the one in which these tools started it, or the usual one. It is assumed
   * to be alive.
   */
  async reachCommand(execId: string, id: string | undefined): Promise<Sandbox | undefined> {
    return this.#known(id ?? this.#commands.get(execId));
  }

  /** Remembers the sandbox of a command, so that a model need not. */
  started(execId: string, sandbox: Sandbox): void {
    this.#commands.set(execId, sandbox.id);
    const [oldest] = this.#commands.keys();
    if (this.#commands.size > MAX_COMMANDS && oldest !== undefined) this.#commands.delete(oldest);
  }

  /** Counts a file that is about to be written, and checks `maxFiles`. */
  count(sandbox: Sandbox, path: string): void {
    const written = this.#byId.get(sandbox.id)?.written;
    const { maxFiles } = this.#context;
    if (written === undefined || maxFiles === undefined || written.has(path)) return;
    if (written.size >= maxFiles) {
      const message = `no more than ${maxFiles} files may be written in this session`;
      throw new HintedError('LIMIT_EXCEEDED', message, 'Change existing files, or put more into one file.');
    }
    written.add(path);
  }

  /** Closes the sandbox of a session. */
  async end(sandbox: Sandbox, options: { keepData?: boolean }): Promise<void> {
    await sandbox.close(options);
    this.forget(sandbox);
  }

  /** Closes the sandboxes that nobody else can reach. */
  async close(): Promise<void> {
    await Promise.all(
      [...this.#byName.values()].map(async (session) => {
        await session.opening?.result.catch(() => {});
        if (this.#isPrivate(session.name)) await session.sandbox?.close();
      }),
    );
  }

  /** Whether no other caller can ask for the session of this name. */
  #isPrivate(name: string): boolean {
    return (this.#scope === undefined && this.#context.session !== name) || this.#manager.isIsolated(name);
  }

  #named(name: string): Session {
    const known = this.#byName.get(name);
    if (known) return known;
    const most = this.#context.maxSessions ?? MAX_SESSIONS;
    const open = [...this.#byName.values()].filter(({ sandbox, opening }) => sandbox ?? opening).length;
    if (open >= most) {
      const message = `${open} sessions are open, and at most ${most} are allowed`;
      throw new HintedError('LIMIT_EXCEEDED', message, 'Use an open one, or close one with sandbox_close.');
    }
    const session: Session = { name, hadOne: false, written: new Set() };
    this.#byName.set(name, session);
    return session;
  }

  /** A session that these tools know, or another session of the scope, whoever opened it. */
  async #identified(id: string): Promise<Session> {
    const session = this.#byId.get(id) ?? (await this.#find((info) => info.id === id || info.key === id));
    if (session) return session;
    const shown = JSON.stringify(id.length > 200 ? `${id.slice(0, 200)}…` : id);
    throw new SandboxError('SANDBOX_NOT_FOUND', `there is no sandbox ${shown} for these tools`);
  }

  async #usualIfThere(): Promise<Session | undefined> {
    const known = this.#byName.get(this.#usual);
    if (known?.sandbox || known?.opening || this.#isPrivate(this.#usual)) return known;
    return this.#find((info) => info.session === this.#usual);
  }

  async #find(isIt: (info: SandboxInfo) => boolean): Promise<Session | undefined> {
    if (this.#scope === undefined) return undefined;
    const listed = await during('opening', this.#manager.list({ scope: this.#scope }));
    const found = listed.find(isIt);
    // An isolated session is never shared, not even in its own scope.
    if (found === undefined || found.isolated) return undefined;
    const sandbox = await during('opening', this.#manager.get(found.id));
    if (sandbox.key !== found.key) return undefined;
    const session = this.#named(found.session);
    this.#remember(session, { sandbox, created: false, replaced: false });
    return session;
  }

  #remember(session: Session, reached: Reached): void {
    const { sandbox } = reached;
    session.sandbox = sandbox;
    session.first = reached;
    session.hadOne = true;
    this.#byId.set(sandbox.id, session).set(sandbox.key, session);
  }

  /** Concurrent first calls open one sandbox together. */
  async #reach(session: Session, image: string | undefined, signal?: AbortSignal): Promise<Reached> {
    signal?.throwIfAborted();
    const { sandbox } = session;
    // The manager checks whether it has that image.
    if (sandbox && image === undefined) return { sandbox, created: false, replaced: false };
    // A sandbox that is being opened may have another image.
    while (image !== undefined && session.opening && !session.opening.isAborted) {
      await unlessAborted(
        session.opening.result.catch(() => {}),
        signal,
      );
    }
    signal?.throwIfAborted();
    if (session.opening === undefined || session.opening.isAborted) {
      const opening = new Opening((aborted) => this.#make(session, image ?? session.image, aborted));
      const over = () => {
        if (session.opening === opening) session.opening = undefined;
      };
      opening.result.then(over, over);
      session.opening = opening;
    }
    const reached = await during('opening', session.opening.wait(signal));
    if (image !== undefined) session.image = image;
    return reached;
  }

  async #make(session: Session, image: string | undefined, signal: AbortSignal): Promise<Reached> {
    const { mode, include, maxResultBytes, commandTimeoutMs, idleTimeoutMs, runtime, ...rest } = this.#context;
    const { maxFileBytes, maxFiles, maxSessions, ...open } = rest;
    const isPrivate = this.#isPrivate(session.name);
    const name = isPrivate ? (session.isolatedName ?? 'isolated') : session.name;
    const options: OpenOptions = { ...open, session: name, signal };
    if (image !== undefined) options.image = image;
    const sandbox = await this.#manager.open(options);
    if (isPrivate) session.isolatedName = sandbox.session;
    const { created } = sandbox;
    const replaced = created && session.hadOne;
    const reached = { sandbox, created, replaced };
    if (created) session.written.clear();
    this.#remember(session, reached);
    if (created && idleTimeoutMs !== undefined) await sandbox.extend({ idleTimeoutMs });
    return reached;
  }
}

function scopeOf({ scope = {} }: ToolContext): Scope | undefined {
  const isEmpty = Object.values(scope).every((id) => id === undefined);
  return isEmpty ? undefined : (scope as Scope);
}

/** Takes one round trip. Errors other than the end of the sandbox are left to the call itself. */
async function isAlive(sandbox: Sandbox): Promise<boolean> {
  try {
    await sandbox.files.exists(sandbox.workdir);
    return true;
  } catch (error) {
    return !isGone(error);
  }
}

/** Whether an error says that its sandbox is gone. */
export function isGone(error: unknown): boolean {
  const { code } = (error ?? {}) as Partial<SandboxError>;
  return code === 'SANDBOX_LOST' || code === 'SANDBOX_CLOSED' || code === 'SANDBOX_NOT_FOUND';
}
