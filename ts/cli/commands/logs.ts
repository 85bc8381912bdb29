/** `cofferdam logs`: shows the output of a command in a sandbox. */
import { SandboxError } from '../../errors';
import type { OutputChunk } from '../../options';
import type { Process } from '../../process';
import type { Sandbox } from '../../sandbox';
import { command, EXIT, say } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { findSandbox, SANDBOX_OPERAND } from '../find';
import { chunkJson, writeChunk } from '../output';
import { wholeNumber } from '../parse';
import { bytes, printJson } from '../print';
import { stopSignal, unlessStopped } from '../stop';

export const logs = command({
  name: 'logs',
  summary: 'Show the output of a command in a sandbox',
  about: `Shows the output of a command that was started in a sandbox: its standard output on ours, its standard error on ours.
With --follow it continues until the command ends; leaving earlier does not end the command.`,
  operands: [
    SANDBOX_OPERAND,
    { name: 'exec', about: 'The id of the command, see cofferdam ps (default: the last one)', optional: true },
  ],
  flags: {
    follow: { type: 'boolean', short: 'f', about: 'Continue until it ends' },
    since: { type: 'string', value: 'seq', about: 'Only output after this chunk, as numbered by --json' },
    json: { type: 'boolean', about: 'Print a line of JSON per chunk of output' },
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam logs -f default', about: 'The last command in your session "default"' },
    { line: 'cofferdam logs sbx_1f0 exec_7a2 --json', about: 'A certain command, for a program' },
  ],
  async run({ flags, operands: [name = '', execId] }) {
    const since = flags.since === undefined ? 0 : wholeNumber('--since', flags.since);
    const show = async (chunk: OutputChunk) => (flags.json ? printJson(chunkJson(chunk), 'line') : writeChunk(chunk));
    const signal = stopSignal();
    const sandbox = await unlessStopped(findSandbox(managerFrom(flags), name), signal);
    const started = await sandbox.process(await idOf(sandbox, execId));
    await unlessStopped(flags.follow ? follow(started, since, show) : showRetained(started, since, show), signal);
    return EXIT.ok;
  },
});

type Show = (chunk: OutputChunk) => Promise<void>;

async function follow(started: Process, since: number, show: Show): Promise<void> {
  for await (const chunk of started) if (chunk.seq > since) await show(chunk);
}

/** Only what is retained now: a command that prints faster than we read would otherwise never end this. */
async function showRetained(started: Process, since: number, show: Show): Promise<void> {
  const { chunks, lostBytes } = await started.read({ sinceSeq: since, maxChunks: Number.MAX_SAFE_INTEGER });
  for (const chunk of chunks) await show(chunk);
  if (lostBytes > 0) say(`${bytes(lostBytes)} in between are no longer retained`);
}

/** By its id or a prefix of it, or the last one that was started. */
async function idOf(sandbox: Sandbox, given: string | undefined): Promise<string> {
  const processes = await sandbox.processes();
  const fitting =
    given === undefined ? processes : processes.filter(({ execId }) => execId === given || begins(execId, given));
  if (given !== undefined && fitting.length > 1) {
    throw new SandboxError(
      'PROCESS_NOT_FOUND',
      `${fitting.length} commands have ids that begin with ${JSON.stringify(given)}`,
    );
  }
  const last = fitting.reduce((a, b) => (b.startedAt >= a.startedAt ? b : a), fitting[0] as (typeof fitting)[number]);
  if (last) return last.execId;
  const what =
    given === undefined
      ? 'no command was started in it recently'
      : `there is no command ${JSON.stringify(given)} in it`;
  throw new SandboxError('PROCESS_NOT_FOUND', `${what}. Try: cofferdam ps ${sandbox.id}`);
}

function begins(execId: string, given: string): boolean {
  const beginning = given.startsWith('exec_') ? given : `exec_${given}`;
  return beginning !== 'exec_' && execId.startsWith(beginning);
}
