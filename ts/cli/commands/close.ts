/** `cofferdam close`: ends sandboxes with everything in them. */
import type { SandboxManager } from '../../manager';
import type { Scope } from '../../options';
import { command, EXIT, say, UsageError } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { findInfo, SANDBOX_OPERAND } from '../find';
import { JSON_FLAG, print, printJson } from '../print';
import { SESSION, scopeFrom } from '../sandbox-options';
import { inWords } from '../words';

export const close = command({
  name: 'close',
  summary: 'End sandboxes',
  about: `Ends sandboxes with everything in them, and prints their ids. Persistent workspaces stay for the next open, unless --data
is given.`,
  operands: [{ ...SANDBOX_OPERAND, optional: true, many: true }],
  flags: {
    all: { type: 'boolean', short: 'a', about: 'All of a scope (default: yours)' },
    data: { type: 'boolean', about: 'Also delete persistent workspaces' },
    scope: SESSION.scope,
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam close sbx_1f0 build', about: 'Two of them' },
    { line: 'cofferdam close --all --scope workflow:wf_1', about: 'All of a workflow' },
  ],
  async run({ flags, operands }) {
    if (flags.all && operands.length > 0) throw new UsageError('name sandboxes or give --all, not both');
    if (!flags.all && flags.scope !== undefined) throw new UsageError('--scope is for --all');
    if (!flags.all && operands.length === 0) throw new UsageError('<sandbox> is missing; name one, or give --all');
    const manager = managerFrom(flags);
    const names = flags.all ? await ofScope(manager, scopeFrom(flags.scope) as Scope) : operands;
    const outcomes = await Promise.allSettled(names.map((name) => end(manager, name, flags.data ? false : undefined)));
    const closed = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    if (flags.json) printJson({ closed });
    else for (const id of closed) print(id);
    const failures = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    // Bugs are rethrown, for their stack.
    for (const failure of failures) if (inWords(failure) === undefined) throw failure;
    for (const failure of failures) say(inWords(failure) as string);
    return failures.length > 0 ? EXIT.failed : EXIT.ok;
  },
});

async function ofScope(manager: SandboxManager, scope: Scope): Promise<string[]> {
  return (await manager.list({ scope })).map(({ id }) => id);
}

async function end(manager: SandboxManager, name: string, keepData: boolean | undefined): Promise<string> {
  const { id } = await findInfo(manager, name);
  const sandbox = await manager.get(id);
  await sandbox.close({ keepData });
  return id;
}
