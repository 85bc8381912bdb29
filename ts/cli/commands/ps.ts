/** `cofferdam ps`: lists the commands that were started in a sandbox through the API. */
import type { ProcessInfo } from '../../options';
import { ellipsized } from '../columns';
import { command, EXIT } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { findSandbox, SANDBOX_OPERAND } from '../find';
import { JSON_FLAG, print, printJson, span, table } from '../print';

export const ps = command({
  name: 'ps',
  summary: 'List the commands that were started in a sandbox',
  about: `Lists the commands that were started in a sandbox, including those that ended recently. To see all its processes, use
cofferdam exec <sandbox> ps.`,
  operands: [SANDBOX_OPERAND],
  flags: {
    quiet: { type: 'boolean', short: 'q', about: 'Print only ids' },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [{ line: 'cofferdam ps default', about: 'In your session "default"' }],
  async run({ flags, operands: [name = ''] }) {
    const sandbox = await findSandbox(managerFrom(flags), name);
    const processes = (await sandbox.processes()).sort((a, b) => a.startedAt.getTime() - b.startedAt.getTime());
    if (flags.json) printJson(processes);
    else if (flags.quiet) for (const { execId } of processes) print(execId);
    else print(table(['EXEC', 'PID', 'STATE', 'AGE', 'COMMAND'], processes.map(row)));
    return EXIT.ok;
  },
});

function row({ execId, pid, command, startedAt, exitCode }: ProcessInfo): string[] {
  const state = exitCode === null ? 'running' : `ended ${exitCode}`;
  return [execId, String(pid), state, span(Date.now() - startedAt.getTime()), oneLine(command)];
}

/** A command may be a whole script. */
function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  const limit = process.stdout.isTTY ? 60 : 200;
  return ellipsized(line, limit);
}
