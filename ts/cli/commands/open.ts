/** `cofferdam open`: opens a session's sandbox for the commands that follow, or creates it. */
import type { OpenOptions } from '../../options';
import { command, EXIT, type Flags, say, UsageError } from '../command';
import { ENGINE, managerFrom, orNothing } from '../engine';
import { pairs, time } from '../parse';
import { JSON_FLAG, print, printJson } from '../print';
import { PullDisplay } from '../pull-display';
import { openFrom, pullFrom, SANDBOX, SESSION, scopeFrom } from '../sandbox-options';
import { stopSignal } from '../stop';

/** No program is linked to it between two commands: the API's default of five minutes would be too short for people. */
const KEEP = '30m';

const { group } = SESSION.scope;
const what = SANDBOX.image.group;

const FLAGS = {
  session: { type: 'string', short: 's', value: 'name', about: 'Name within the scope (default: default)', group },
  scope: SESSION.scope,
  keep: { type: 'string', value: 'time', about: `End it after this long without use: 2h, never (default: ${KEEP})` },
  lifetime: { type: 'string', value: 'time', about: 'End it after this long in any case (default: 4h)' },
  timeout: { type: 'string', short: 't', value: 'time', about: 'How long opening may take' },
  ...JSON_FLAG,
  ...SANDBOX,
  workdir: {
    type: 'string',
    short: 'w',
    value: 'folder',
    about: 'Where commands run (default: /workspace)',
    group: what,
  },
  user: {
    type: 'string',
    short: 'u',
    value: 'uid[:gid]',
    about: 'The command user: a uid or a name in the image',
    group: what,
  },
  persist: {
    type: 'boolean',
    about: 'Make the workdir a persistent workspace, which outlives the sandbox',
    group: what,
  },
  'read-only': { type: 'boolean', about: 'Make everything read-only except the workdir and /tmp', group: what },
  label: { type: 'string', short: 'l', multiple: true, value: 'name=value', about: 'For your own use', group: what },
  init: { type: 'string', value: 'command', about: 'Shell command to run once in a new sandbox', group: what },
  pull: {
    type: 'string',
    value: 'missing|always|never',
    about: 'When to pull the image (default: missing)',
    group: what,
    complete: ['missing', 'always', 'never'],
  },
  ...ENGINE,
} as const satisfies Flags;

export const open = command({
  name: 'open',
  summary: "Open a session's sandbox, and print its id",
  about: `Prints the id of a session's sandbox, and creates the sandbox if there is none. It stays when this program ends, until
cofferdam close or one of its timeouts ends it.`,
  flags: FLAGS,
  examples: [
    { line: 'cofferdam open --image python', about: 'Your session "default"' },
    {
      line: 'id=$(cofferdam open -s build -i node --persist --keep 8h --lifetime 10h)',
      about: 'A named session, for a working day',
    },
    { line: 'cofferdam open --scope workflow:wf_1 --json', about: 'A session of a workflow, for a program' },
  ],
  async run({ flags }) {
    if (flags.session === 'isolated') {
      throw new UsageError(
        '--session isolated ends with the program that opened it, which is this one; give it another name',
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
        say('it was open already: --keep sets its idle timeout, and its orphan timeout stays as it was');
      }
    }
    if (flags.json) printJson({ ...(await sandbox.info()), created: sandbox.created });
    else print(sandbox.id);
    return EXIT.ok;
  },
});
