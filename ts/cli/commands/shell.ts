/**
 * `cofferdam shell`: a terminal in a sandbox, as if it were here.
 *
 * Invariant: a sandbox that was made for the shell alone goes with it. Where this program is killed, its lease sees to that.
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

/** A person at work is no reason to end a sandbox for its age; one whose program was killed has nobody. */
const OWN_LEASE = { maxLifetimeMs: 0, orphanTimeoutMs: 10_000 };

/** Nothing is linked to a session between two visits; as long as `cofferdam open` keeps one. */
const SESSION_LEASE = { orphanTimeoutMs: 30 * 60_000 };

const FLAGS = {
  session: {
    type: 'string',
    short: 's',
    value: 'name',
    about: 'In a session of yours, made if need be, which stays for 30 min after you',
  },
  user: { type: 'string', short: 'u', about: 'Whom to be: uid[:gid], or a name in the image' },
  workdir: { type: 'string', short: 'w', value: 'folder', about: 'Where to begin; the workspace unless told' },
  join: { type: 'string', value: 'execId', about: 'Come back to a terminal that goes on' },
  'detach-keys': {
    type: 'string',
    value: 'keys',
    about: 'What leaves a shell without ending it; ctrl-],d unless told, or none',
  },
  ...SANDBOX,
  ...ENGINE,
} as const satisfies Flags;

/** Of a sandbox that is there already, they were decided by whoever made it. */
const OF_A_NEW_ONE = ['session', 'image', 'network', 'cpus', 'memory', 'pids', 'package'] as const;

export const shell = command({
  name: 'shell',
  summary: 'Open a terminal in a sandbox',
  about: `Without a sandbox, a new one is made for the shell, and closed when you leave. All keys go to the
sandbox, Ctrl-C and Ctrl-Z too, and the exit code is that of the shell. TERM and COLORTERM are passed
on, and LANG where the sandbox has none; --env goes before all of them.

In a sandbox that stays, Ctrl-] and then d, within a second, leaves the shell running; --join comes
back to it. When this program is ended by a signal, a shell that it opened ends too; one that it came
back to goes on.

Your terminal is put back as it was, whatever happens, unless this program is killed with SIGKILL: then
type "reset". A sandbox of its own ends 10 s after such a kill (COFFERDAM_ORPHAN_TIMEOUT), and does not
end for its age.`,
  operands: [{ ...SANDBOX_OPERAND, optional: true }],
  tail: { name: 'command', about: "What to run instead of the user's own shell", optional: true, many: true },
  flags: FLAGS,
  examples: [
    { line: 'cofferdam shell --image python', about: 'A new sandbox, gone when you leave' },
    { line: 'cofferdam shell 4f2a', about: 'Look into the sandbox of an agent, by the beginning of its id' },
    { line: 'cofferdam shell -- vi notes.txt', about: 'Any program that wants a terminal' },
  ],
  async run({ flags, operands: [name], tail }) {
    check(flags, name, tail);
    if (!LocalTerminal.isThere) {
      const what = process.stdin.isTTY ? 'output' : 'input';
      const instead = name === undefined ? 'cofferdam run' : `cofferdam exec ${name} …`;
      throw new UsageError(`a shell needs a terminal, and standard ${what} is none. For scripts: ${instead}`);
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
      local.seize();
      const output = flags.join === undefined ? terminal : pastAndPresent(sandbox, flags.join);
      if (flags.join !== undefined) await redraw(terminal, local);
      const keys = isOwn ? Buffer.alloc(0) : detachKeys;
      leaving = await attach(local, { sandbox, terminal, output, detachKeys: keys, signal });
    } catch (error) {
      throw error instanceof HungUp ? new Stopped('SIGHUP') : error;
    } finally {
      // Nobody could come back to it; and what was opened by others is theirs to end. It is under way before a terminal that
      // takes nothing any more could hold us up.
      const isLeft = leaving === undefined && flags.join === undefined;
      const ended = isOwn ? sandbox.close() : isLeft ? terminal?.close() : undefined;
      await local.settle();
      local.release();
      await ended?.catch(() => {});
    }
    if (leaving.how === 'exited') return leaving.exitCode;
    const there = (['backend', 'host'] as const).flatMap((flag) => (flags[flag] ? [` --${flag} ${flags[flag]}`] : []));
    say(`it goes on; come back with: cofferdam shell ${sandbox.id} --join ${terminal.execId}${there.join('')}`);
    return EXIT.ok;
  },
});

function check(flags: Given<typeof FLAGS>, name: string | undefined, tail: readonly string[]): void {
  const decided = OF_A_NEW_ONE.find((flag) => flags[flag] !== undefined);
  if (name !== undefined && decided) throw new UsageError(`--${decided} is for a new sandbox, and ${name} is there`);
  if (flags.session === 'isolated') {
    throw new UsageError('--session isolated is nobody’s to find again: leave it out, or give it a name');
  }
  if (flags.join === undefined) return;
  if (name === undefined) throw new UsageError('--join is for a terminal in a sandbox: name the sandbox');
  const stray = tail.length > 0 ? 'a command' : (['user', 'workdir', 'env'] as const).find((flag) => flags[flag]);
  if (stray) throw new UsageError(`--join comes back to what runs there: ${stray} cannot be given`);
}

/** What the environment says goes before. */
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

/** What programs must know of a terminal. A sandbox that knows its language also has it, which ours may not be there. */
async function environment(sandbox: Sandbox): Promise<Record<string, string>> {
  const { TERM, COLORTERM, LANG } = process.env;
  const knows = LANG
    ? await sandbox.exec(['printenv', 'LANG']).then(
        ({ ok }) => ok,
        () => false,
      )
    : true;
  const known = Object.entries({ TERM, COLORTERM, LANG: knows ? undefined : LANG });
  return Object.fromEntries(known.filter((entry): entry is [string, string] => Boolean(entry[1])));
}

/** Programs draw their screen anew when its size changes, and only then. */
async function redraw(terminal: Terminal, local: LocalTerminal): Promise<void> {
  const { cols, rows } = local.size;
  await terminal.resize({ cols, rows: Math.max(1, rows - 1) });
  await terminal.resize({ cols, rows });
}
