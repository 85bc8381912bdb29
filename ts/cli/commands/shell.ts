/**
 * `cofferdam shell`: a terminal in a sandbox, as if it were local.
 *
 * Invariant: a sandbox that was created for the shell ends with it. If this program is killed, its lease ends it.
 */
import type { SandboxManager } from '../../manager';
import type { OpenOptions, SandboxManagerOptions } from '../../options';
import type { Sandbox } from '../../sandbox';
import type { Terminal } from '../../terminal';
import { command, EXIT, type Flags, type Given, say, UsageError } from '../command';
import { ENGINE, managerFrom, orNothing } from '../engine';
import { findSandbox, SANDBOX_OPERAND } from '../find';
import { pairs } from '../parse';
import { PullDisplay } from '../pull-display';
import { openFrom, SANDBOX, scopeFrom } from '../sandbox-options';
import { Stopped, stopSignal } from '../stop';
import { attach, HungUp, type Leaving } from '../terminal/attachment';
import { keysFrom } from '../terminal/detach-keys';
import { LocalTerminal } from '../terminal/local-terminal';
import { pastAndPresent } from '../terminal/past';

/** No maximum lifetime while a person works in it; a short orphan timeout in case this program is killed. */
const OWN_LEASE = { maxLifetimeMs: 0, orphanTimeoutMs: 10_000 };

/** No program is linked to a session between two visits. The same time as in `cofferdam open`. */
const SESSION_LEASE = { orphanTimeoutMs: 30 * 60_000 };

const FLAGS = {
  session: {
    type: 'string',
    short: 's',
    value: 'name',
    about: 'Use one of your sessions, or create it; it stays for 30 min after you leave',
  },
  user: { type: 'string', short: 'u', about: 'Your user: uid[:gid], or a name in the image' },
  workdir: { type: 'string', short: 'w', value: 'folder', about: 'Where to start (default: the workdir)' },
  join: { type: 'string', value: 'execId', about: 'Reattach to a running terminal' },
  'detach-keys': {
    type: 'string',
    value: 'keys',
    about: 'Keys that detach from a shell without ending it, or none (default: ctrl-],d)',
  },
  ...SANDBOX,
  ...ENGINE,
} as const satisfies Flags;

/** Options that apply only when a sandbox is created. */
const FOR_NEW_ONE = ['session', 'image', 'network', 'cpus', 'memory', 'pids', 'package'] as const;

export const shell = command({
  name: 'shell',
  summary: 'Open a terminal in a sandbox',
  about: `Without a sandbox, creates one for the shell, and closes it when you leave. All keys go to the sandbox, including
Ctrl-C and Ctrl-Z, and the exit code is that of the shell. TERM and COLORTERM are passed on, and LANG if the sandbox
has none; --env overrides them.

In an existing sandbox or a session, Ctrl-] and then d within a second detaches and leaves the shell running; --join
reattaches to it. If a signal ends this program, a shell that it opened ends too; one that it joined keeps running.

Your terminal is restored in any case, except when this program is killed with SIGKILL: then type "reset". The sandbox
of its own then ends after 10 s (COFFERDAM_ORPHAN_TIMEOUT). It has no maximum lifetime.`,
  operands: [{ ...SANDBOX_OPERAND, optional: true }],
  tail: { name: 'command', about: "What to run instead of the user's shell", optional: true, many: true },
  flags: FLAGS,
  examples: [
    { line: 'cofferdam shell --image python', about: 'A new sandbox, closed when you leave' },
    { line: 'cofferdam shell 4f2a', about: 'In the sandbox of an agent, by a prefix of its id' },
    { line: 'cofferdam shell -- vi notes.txt', about: 'Any program that needs a terminal' },
  ],
  async run({ flags, operands: [name], tail }) {
    check(flags, name, tail);
    if (!LocalTerminal.isAvailable) {
      const what = process.stdin.isTTY ? 'output' : 'input';
      const instead = name === undefined ? 'cofferdam run' : `cofferdam exec ${name} …`;
      throw new UsageError(`a shell needs a terminal, and standard ${what} is not one. For scripts: ${instead}`);
    }
    const detachKeys = keysFrom('--detach-keys', flags['detach-keys'] ?? 'ctrl-],d');
    const signal = stopSignal();
    const isOwn = name === undefined && flags.session === undefined;
    const manager = managerFrom(flags, name === undefined ? lease(isOwn ? OWN_LEASE : SESSION_LEASE) : {});
    const sandbox = await (name === undefined ? open(manager, flags, signal) : findSandbox(manager, name));
    const local = new LocalTerminal();
    let terminal: Terminal | undefined;
    let leaving: Leaving | undefined;
    try {
      terminal = await join(sandbox, local, flags, tail, { isOwn, signal });
      local.take();
      const output = flags.join === undefined ? terminal : pastAndPresent(sandbox, flags.join);
      if (flags.join !== undefined) await redraw(terminal, local);
      const keys = isOwn ? Buffer.alloc(0) : detachKeys;
      leaving = await attach(local, { sandbox, terminal, output, detachKeys: keys, signal });
    } catch (error) {
      throw error instanceof HungUp ? new Stopped('SIGHUP') : error;
    } finally {
      // Ends what no one could reattach to; what others opened stays. Starts before the local terminal is awaited, which may
      // be stuck.
      const isLeft = leaving === undefined && flags.join === undefined;
      const ended = isOwn ? sandbox.close() : isLeft ? terminal?.close() : undefined;
      await local.drain();
      local.release();
      await ended?.catch(() => {});
    }
    if (leaving.how === 'exited') return leaving.exitCode;
    const engine = (['backend', 'host'] as const).flatMap((flag) => (flags[flag] ? [` --${flag} ${flags[flag]}`] : []));
    say(`detached; to reattach: cofferdam shell ${sandbox.id} --join ${terminal.execId}${engine.join('')}`);
    return EXIT.ok;
  },
});

function check(flags: Given<typeof FLAGS>, name: string | undefined, tail: readonly string[]): void {
  const decided = FOR_NEW_ONE.find((flag) => flags[flag] !== undefined);
  if (name !== undefined && decided)
    throw new UsageError(`--${decided} is for a new sandbox, and ${name} already exists`);
  if (flags.session === 'isolated') {
    throw new UsageError('--session isolated cannot be found again: leave it out, or give it a name');
  }
  if (flags.join === undefined) return;
  if (name === undefined) throw new UsageError('--join needs a sandbox: name the sandbox');
  const stray = tail.length > 0 ? 'a command' : (['user', 'workdir', 'env'] as const).find((flag) => flags[flag]);
  if (stray) throw new UsageError(`--join reattaches to what runs there: ${stray} cannot be given`);
}

/** Environment variables take precedence. */
function lease(own: SandboxManagerOptions): SandboxManagerOptions {
  const { COFFERDAM_ORPHAN_TIMEOUT, COFFERDAM_MAX_LIFETIME } = process.env;
  return {
    ...own,
    ...(COFFERDAM_ORPHAN_TIMEOUT ? { orphanTimeoutMs: undefined } : {}),
    ...(COFFERDAM_MAX_LIFETIME ? { maxLifetimeMs: undefined } : {}),
  };
}

async function open(manager: SandboxManager, flags: Given<typeof FLAGS>, signal: AbortSignal): Promise<Sandbox> {
  const display = new PullDisplay(process.stderr);
  const session = flags.session === undefined ? {} : { scope: scopeFrom(undefined), session: flags.session };
  const onPullProgress: OpenOptions['onPullProgress'] = (step) => display.show(step);
  const opening = manager.open({ ...openFrom(flags), ...session, onPullProgress });
  return orNothing(manager, opening, signal).finally(() => display.finish());
}

async function join(
  sandbox: Sandbox,
  local: LocalTerminal,
  flags: Given<typeof FLAGS>,
  tail: readonly string[],
  { isOwn, signal }: { isOwn: boolean; signal: AbortSignal },
): Promise<Terminal> {
  if (flags.join !== undefined) return sandbox.terminal({ execId: flags.join, signal });
  return sandbox.terminal({
    ...local.size,
    ...(tail.length > 0 ? { command: [...tail] } : {}),
    env: { ...(await environment(sandbox)), ...pairs('--env', flags.env) },
    user: flags.user,
    cwd: flags.workdir,
    detached: !isOwn,
    signal,
  });
}

/** What programs need to know of a terminal. Our LANG may not exist in the sandbox, so its own takes precedence. */
async function environment(sandbox: Sandbox): Promise<Record<string, string>> {
  const { TERM, COLORTERM, LANG } = process.env;
  const hasLang = LANG
    ? await sandbox.exec(['printenv', 'LANG']).then(
        ({ ok }) => ok,
        () => false,
      )
    : true;
  const known = Object.entries({ TERM, COLORTERM, LANG: hasLang ? undefined : LANG });
  return Object.fromEntries(known.filter((entry): entry is [string, string] => Boolean(entry[1])));
}

/** Programs redraw their screen only when its size changes. */
async function redraw(terminal: Terminal, local: LocalTerminal): Promise<void> {
  const { cols, rows } = local.size;
  await terminal.resize({ cols, rows: Math.max(1, rows - 1) });
  await terminal.resize({ cols, rows });
}
