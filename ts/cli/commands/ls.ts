/** `cofferdam ls`: which sandboxes there are. */
import type { Scope } from '../../options';
import { command, EXIT } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { JSON_FLAG, print, printJson, span, table } from '../print';
import { SESSION, scopeFrom } from '../sandbox-options';

export const ls = command({
  name: 'ls',
  summary: 'List sandboxes',
  about: `Lists the sandboxes of all programs and people, oldest first. Those that are ready for nobody yet, and those that are
stopped, of which only the workspace is there, are listed with --all.`,
  flags: {
    all: { type: 'boolean', short: 'a', about: 'Also those that are warm or stopped' },
    quiet: { type: 'boolean', short: 'q', about: 'Ids alone' },
    scope: { ...SESSION.scope, about: 'Only those of a workflow:…, an agent:… or a user:…' },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam ls', about: 'For people' },
    { line: "cofferdam ls --json | jq -r '.[].key'", about: 'For programs' },
  ],
  async run({ flags }) {
    const scope = flags.scope === undefined ? undefined : (scopeFrom(flags.scope) as Scope);
    const all = await managerFrom(flags).list({ scope });
    const shown = all.filter(({ state }) => flags.all || state === 'running' || state === 'paused');
    if (flags.json) printJson(shown);
    else if (flags.quiet) for (const { id } of shown) print(id);
    else {
      const rows = shown.map(({ id, key, image, state, createdAt }) => [
        id,
        state,
        span(Date.now() - createdAt.getTime()),
        image,
        key,
      ]);
      print(table(['ID', 'STATE', 'AGE', 'IMAGE', 'SESSION'], rows));
    }
    return EXIT.ok;
  },
});
