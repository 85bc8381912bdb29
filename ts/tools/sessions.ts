/**
 * Which sandboxes a set of tools can reach, and the only way to them.
 *
 * Invariant: a model reaches what these tools opened, and in a scope the scope's other sessions; never anything else,
 * whatever name or id it gives. Without a scope, names are these tools' own: none leads to a session that the manager has
 * for somebody else.
 */
import { randomBytes } from 'node:crypto';
import { SandboxError } from '../errors';
import { unlessAborted } from '../internal/abort';
import type { SandboxManager } from '../manager';
import type { OpenOptions, SandboxInfo, Scope } from '../options';
import type { Sandbox } from '../sandbox';
import { during, HintedError } from './failure';
import { Opening } from './opening';
import type { ToolContext } from './toolset';

const MAX_SESSIONS = 10;

/** Of so many commands it is known in which sandbox they run. */
const MAX_COMMANDS = 1_000;

/** How the names of sessions begin that nobody shares, here and in the core. */
const ISOLATED = 'isolated';

/** A sandbox for one call, and whether it is new. */
export interface Reached {
  sandbox: Sandbox;
  /** It was made for this call. */
  created: boolean;
  /** It took the place of one that these tools had before. */
  replaced: boolean;
}

interface Session {
  name: string;
  /** What the model chose; the context's unless it did. */
  image?: string;
  opening?: Opening<Reached>;
  sandbox?: Sandbox;
  /** There was a sandbox before, which the model may think is still there. */
  hadOne: boolean;
  /** What was written through the tools. */
  written: Set<string>;
}

export class Sessions {
  readonly #manager: SandboxManager;
  readonly #context: ToolContext;
  readonly #scope: Scope | undefined;
  /** The session that calls work in which name none. */
  readonly #usual: string;
  /** What no other set of tools can name. */
  readonly #secret = randomBytes(12).toString('hex');
  readonly #byName = new Map<string, Session>();
  /** By sandbox id and by session key, those of the past too: a model may go on using them. */
  readonly #byId = new Map<string, Session>();
  /** Where commands run, the oldest first. */
  readonly #commands = new Map<string, string>();

  constructor(manager: SandboxManager, context: ToolContext) {
    this.#manager = manager;
    this.#context = context;
    this.#scope = winner(context.scope);
    this.#usual = context.session ?? 'default';
  }

  /** The sandbox of a session by name, made if it is not there. */
  async open(name: string | undefined, image?: string, signal?: AbortSignal): Promise<Reached> {
    return this.#live(this.#named(name ?? this.#usual), image, signal);
  }

  /** The sandbox with this id or session key; that of the usual session without. */
  async reach(id: string | undefined, signal?: AbortSignal): Promise<Reached> {
    const session = id === undefined ? this.#named(this.#usual) : await this.#identified(id);
    return this.#live(session, undefined, signal);
  }

  /** As `reach`, but makes none: `undefined` when the session has no sandbox now. */
  async reachOpen(id: string | undefined): Promise<Sandbox | undefined> {
    const session = id === undefined ? await this.#usualIfThere() : await this.#identified(id);
    await session?.opening?.result.catch(() => {});
    return session?.sandbox && (await isAlive(session.sandbox)) ? session.sandbox : undefined;
  }

  /** The sandbox in which a command runs: the one that is named, the one in which these tools started it, or the usual one. */
  async reachCommand(execId: string, id: string | undefined): Promise<Sandbox | undefined> {
    return this.reachOpen(id ?? this.#commands.get(execId));
  }

  /** Remembers where a command runs, so that a model need not. */
  started(execId: string, sandbox: Sandbox): void {
    this.#commands.set(execId, sandbox.id);
    const [oldest] = this.#commands.keys();
    if (this.#commands.size > MAX_COMMANDS && oldest !== undefined) this.#commands.delete(oldest);
  }

  /** Counts a file that is about to be written, against `maxFiles`. */
  count(sandbox: Sandbox, path: string): void {
    const written = this.#byId.get(sandbox.id)?.written;
    const { maxFiles } = this.#context;
    if (written === undefined || maxFiles === undefined || written.has(path)) return;
    if (written.size >= maxFiles) {
      const message = `no more than ${maxFiles} files may be written in this session`;
      throw new HintedError('LIMIT_EXCEEDED', message, 'Change files that are there, or put more into one file.');
    }
    written.add(path);
  }

  /** Ends a session's sandbox. */
  async end(sandbox: Sandbox, options: { keepData?: boolean }): Promise<void> {
    await sandbox.close(options);
    const session = this.#byId.get(sandbox.id);
    if (session?.sandbox === sandbox) session.sandbox = undefined;
  }

  /** Ends those that nobody else can come back to. */
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
    return isIsolated(name) || (this.#scope === undefined && this.#context.session !== name);
  }

  /** As the manager is asked for it. */
  #sessionName(name: string): string {
    return this.#isPrivate(name) ? `${ISOLATED}-${this.#secret}-${name}` : name;
  }

  #named(name: string): Session {
    const known = this.#byName.get(name);
    if (known) return known;
    const most = this.#context.maxSessions ?? MAX_SESSIONS;
    const open = [...this.#byName.values()].filter(({ sandbox, opening }) => sandbox ?? opening).length;
    if (open >= most) {
      const message = `these tools may have ${most} sessions at the same time, and have ${open}`;
      throw new HintedError('LIMIT_EXCEEDED', message, 'Use one that is open, or close one with sandbox_close.');
    }
    const session: Session = { name, hadOne: false, written: new Set() };
    this.#byName.set(name, session);
    return session;
  }

  /** A session that these tools know, or another one of the scope, whoever opened it. */
  async #identified(id: string): Promise<Session> {
    const session = this.#byId.get(id) ?? (await this.#find((info) => info.id === id || info.key === id));
    if (session) return session;
    const shown = JSON.stringify(id.length > 200 ? `${id.slice(0, 200)}…` : id);
    throw new SandboxError('SANDBOX_NOT_FOUND', `there is no sandbox ${shown} for these tools`);
  }

  async #usualIfThere(): Promise<Session | undefined> {
    const known = this.#byName.get(this.#usual);
    if (known?.sandbox || known?.opening || this.#isPrivate(this.#usual)) return known;
    return this.#find((info) => nameIn(info.key) === this.#usual);
  }

  async #find(isIt: (info: SandboxInfo) => boolean): Promise<Session | undefined> {
    if (this.#scope === undefined) return undefined;
    const listed = await during('opening', this.#manager.list({ scope: this.#scope }));
    const found = listed.find(isIt);
    const name = found && nameIn(found.key);
    // What is isolated is nobody else's, in its own scope too.
    if (found === undefined || name === undefined || isIsolated(name)) return undefined;
    const sandbox = await during('opening', this.#manager.get(found.id));
    if (sandbox.key !== found.key) return undefined;
    const session = this.#named(name);
    this.#remember(session, sandbox);
    return session;
  }

  #remember(session: Session, sandbox: Sandbox): void {
    session.sandbox = sandbox;
    session.hadOne = true;
    this.#byId.set(sandbox.id, session).set(sandbox.key, session);
  }

  /** Concurrent first calls open one sandbox; one that is gone is made again. */
  async #live(session: Session, image: string | undefined, signal?: AbortSignal): Promise<Reached> {
    signal?.throwIfAborted();
    const { sandbox } = session;
    // Whether it has that image is the manager's to say.
    if (sandbox && image === undefined && (await isAlive(sandbox))) return { sandbox, created: false, replaced: false };
    // One that is being opened may be another image's.
    while (image !== undefined && session.opening && !session.opening.isGivenUp) {
      await unlessAborted(
        session.opening.result.catch(() => {}),
        signal,
      );
    }
    signal?.throwIfAborted();
    if (session.opening === undefined || session.opening.isGivenUp) {
      const opening = new Opening((givenUp) => this.#make(session, image ?? session.image, givenUp));
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
    const options: OpenOptions = { ...open, session: this.#sessionName(session.name), signal };
    if (image !== undefined) options.image = image;
    const sandbox = await this.#manager.open(options);
    const { created } = sandbox;
    const replaced = created && session.hadOne;
    if (created) session.written.clear();
    this.#remember(session, sandbox);
    if (created && idleTimeoutMs !== undefined) await sandbox.extend({ idleTimeoutMs });
    return { sandbox, created, replaced };
  }
}

function isIsolated(name: string): boolean {
  return name === ISOLATED || name.startsWith(`${ISOLATED}-`);
}

/** The one scope that counts: the workflow wins over the agent, the agent over the user. */
function winner({ workflow, agent, user }: NonNullable<OpenOptions['scope']> = {}): Scope | undefined {
  if (workflow !== undefined) return { workflow };
  if (agent !== undefined) return { agent };
  return user === undefined ? undefined : { user };
}

/** The session's name in a key, which has `%` and `:` escaped. */
function nameIn(key: string): string {
  const name = key.slice(key.lastIndexOf(':') + 1);
  return name.replaceAll('%3A', ':').replaceAll('%25', '%');
}

/** One round trip. One that fails for another reason than the sandbox's end is told by the call itself. */
async function isAlive(sandbox: Sandbox): Promise<boolean> {
  try {
    await sandbox.files.exists(sandbox.workdir);
    return true;
  } catch (error) {
    const { code } = error as Partial<SandboxError>;
    return code !== 'SANDBOX_LOST' && code !== 'SANDBOX_CLOSED' && code !== 'SANDBOX_NOT_FOUND';
  }
}
