/** `cofferdam ls`: lists sandboxes. */
import type { Scope } from '../../options';
import { command, EXIT } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { JSON_FLAG, print, printJson, span, table } from '../print';
import { SESSION, scopeFrom } from '../sandbox-options';

export const ls = command({
  name: 'ls',
  summary: 'List sandboxes',
  about: `Lists the sandboxes of all programs and users, oldest first. With --all, also warm ones, which are not in use yet, and
stopped ones, of which only the workspace is left.`,
  flags: {
    all: { type: 'boolean', short: 'a', about: 'Also warm and stopped ones' },
    quiet: { type: 'boolean', short: 'q', about: 'Print only ids' },
    scope: { ...SESSION.scope, about: 'Only those of workflow:…, agent:… or user:…' },
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
