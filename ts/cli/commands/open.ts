/** `cofferdam open`: a session's sandbox for the commands that follow, made where it is not there. */
import type { OpenOptions } from '../../options';
import { command, EXIT, type Flags, say, UsageError } from '../command';
import { ENGINE, managerFrom, orNothing } from '../engine';
import { pairs, time } from '../parse';
import { JSON_FLAG, print, printJson } from '../print';
import { PullDisplay } from '../pull-display';
import { openFrom, pullFrom, SANDBOX, SESSION, scopeFrom } from '../sandbox-options';
import { stopSignal } from '../stop';

/** No program stays linked to it between two commands: the API's own five minutes would be too short for a coffee. */
const KEEP = '30m';

const { group } = SESSION.scope;
const what = SANDBOX.image.group;

const FLAGS = {
  session: { type: 'string', short: 's', value: 'name', about: 'Which of its sessions; "default" unless told', group },
  scope: SESSION.scope,
  keep: { type: 'string', value: 'time', about: `End it after so long without use: 2h, never; ${KEEP} unless told` },
  lifetime: { type: 'string', value: 'time', about: 'End it after so long in any case; 4h unless told' },
  timeout: { type: 'string', short: 't', value: 'time', about: 'How long opening may take' },
  ...JSON_FLAG,
  ...SANDBOX,
  workdir: {
    type: 'string',
    short: 'w',
    value: 'folder',
    about: 'Where commands run; /workspace unless told',
    group: what,
  },
  user: {
    type: 'string',
    short: 'u',
    value: 'uid[:gid]',
    about: 'As whom commands run: a number or a name',
    group: what,
  },
  persist: { type: 'boolean', about: 'Keep the workdir for the next time when it is closed', group: what },
  'read-only': { type: 'boolean', about: 'Only the workdir and /tmp may be written', group: what },
  label: { type: 'string', short: 'l', multiple: true, value: 'name=value', about: 'For your own use', group: what },
  init: { type: 'string', value: 'command', about: 'A line for the shell, run once when it is made', group: what },
  pull: {
    type: 'string',
    value: 'missing|always|never',
    about: 'When to pull the image; missing unless told',
    group: what,
    complete: ['missing', 'always', 'never'],
  },
  ...ENGINE,
} as const satisfies Flags;

export const open = command({
  name: 'open',
  summary: 'Open a sandbox, or find the one that is open, and print its id',
  about: `Prints the id of a session's sandbox, and makes the sandbox where there is none. It stays when this program ends:
cofferdam close ends it, or its own time limits do.`,
  flags: FLAGS,
  examples: [
    { line: 'cofferdam open --image python', about: 'The session "default" of yours' },
    {
      line: 'id=$(cofferdam open -s build -i node --persist --keep 8h --lifetime 10h)',
      about: 'A session by name, for a working day',
    },
    { line: 'cofferdam open --scope workflow:wf_1 --json', about: 'That of a workflow, for a program' },
  ],
  async run({ flags }) {
    if (flags.session === 'isolated') {
      throw new UsageError(
        '--session isolated ends with the program that opened it, which is this one. Give it a name',
      );
    }
    const keepMs = time('--keep', flags.keep);
    const lifetimeMs = time('--lifetime', flags.lifetime);
    const orphan = keepMs ?? (process.env.COFFERDAM_ORPHAN_TIMEOUT ? undefined : time('--keep', KEEP));
    const manager = managerFrom(flags, {
      idleTimeoutMs: keepMs,
      orphanTimeoutMs: orphan,
      maxLifetimeMs: lifetimeMs,
    });
    const signal = stopSignal();
    const display = process.stderr.isTTY ? new PullDisplay(process.stderr) : undefined;
    const options: OpenOptions = {
      ...openFrom(flags),
      scope: scopeFrom(flags.scope),
      session: flags.session,
      workdir: flags.workdir,
      user: flags.user,
      persist: flags.persist,
      readOnlyRoot: flags['read-only'],
      labels: pairs('--label', flags.label),
      init: flags.init,
      pull: pullFrom(flags.pull),
      onPullProgress: (step) => display?.show(step),
      timeoutMs: time('--timeout', flags.timeout),
    };
    const sandbox = await orNothing(manager, manager.open(options), signal).finally(() => display?.finish());
    if (!sandbox.created && (keepMs !== undefined || lifetimeMs !== undefined)) {
      await sandbox.extend({ idleTimeoutMs: keepMs, maxLifetimeMs: lifetimeMs });
      if (keepMs !== undefined) {
        say(
          'it was open already. Used, it stays as you say; with no program at it, as long as was said when it was made',
        );
      }
    }
    if (flags.json) printJson({ ...(await sandbox.info()), created: sandbox.created });
    else print(sandbox.id);
    return EXIT.ok;
  },
});
