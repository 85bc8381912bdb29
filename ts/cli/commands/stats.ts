/** `cofferdam stats`: shows what sandboxes use, live. */
import { SandboxError } from '../../errors';
import type { SandboxInfo, Scope } from '../../options';
import { command, EXIT, UsageError } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { findInfo, SANDBOX_OPERAND } from '../find';
import { LiveTable } from '../live-table';
import { pause } from '../pause';
import { bytes, JSON_FLAG, paint, print, printJson, table } from '../print';
import { SESSION, scopeFrom } from '../sandbox-options';
import { stopSignal } from '../stop';
import { type Usage, UsageMeter } from '../usage-meter';

const HEADINGS = ['SANDBOX', 'CPU', 'MEMORY', 'PIDS', 'WORKSPACE', 'READ', 'WRITTEN', 'KEY'];

/** Between the first two polls, which the share of a processor needs. */
const FIRST_POLL_MS = 250;

export const stats = command({
  name: 'stats',
  summary: 'Show what sandboxes use, live',
  about: `Shows all running sandboxes, those of a scope, or the named ones. On a terminal, the table is redrawn every second
until Ctrl-C; in a pipe, it is printed once, or every second with --follow. 100% is one processor.

This is no activity for idle timeouts. But it takes a link to each sandbox, and a sandbox with a link is no orphan:
its orphan timeout counts from the end of this program.`,
  operands: [{ ...SANDBOX_OPERAND, optional: true, many: true }],
  flags: {
    once: { type: 'boolean', about: 'Print it once, even on a terminal' },
    follow: {
      type: 'boolean',
      short: 'f',
      about: 'Continue, even in a pipe; with --json, a line each time',
    },
    scope: { ...SESSION.scope, about: 'Only those of workflow:wf_1, agent:… or user:…', group: undefined },
    interval: { type: 'string', value: 'seconds', about: 'How often (default: 1)' },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam stats', about: 'All sandboxes, live' },
    { line: 'cofferdam stats --json | jq ".[].memoryBytes"', about: 'Once, for a program' },
  ],
  async run({ flags, operands }) {
    if (flags.once && flags.follow) throw new UsageError('--once and --follow exclude each other');
    const intervalMs = secondsFrom(flags.interval ?? '1') * 1000;
    const isLive = !flags.once && !flags.json && process.stdout.isTTY === true;
    const signal = stopSignal();
    const manager = managerFrom(flags);
    const named = await Promise.all(operands.map((name) => findInfo(manager, name)));
    const ids = new Set(named.map(({ id }) => id));
    const scope = flags.scope === undefined ? undefined : (scopeFrom(flags.scope) as Scope);
    const meter = new UsageMeter(manager, { scope, ids });
    await meter.poll();
    const screen = isLive ? new LiveTable() : undefined;
    try {
      let isOn = await pause(Math.min(FIRST_POLL_MS, intervalMs), signal);
      while (isOn) {
        const usage = await meter.poll();
        if (ids.size > 0 && usage.length === 0) throw gone(named);
        if (screen) screen.draw(tableOf(usage));
        else if (flags.json) printJson(usage.map(toJson), flags.follow ? 'line' : 'document');
        else print(tableOf(usage));
        isOn = (isLive || flags.follow === true) && (await pause(intervalMs, signal));
      }
    } finally {
      screen?.end();
    }
    return EXIT.ok;
  },
});

function secondsFrom(given: string): number {
  const seconds = Number(given);
  if (!(seconds >= 0.1 && seconds <= 3600)) {
    throw new UsageError(`--interval must be between 0.1 and 3600 seconds, not ${JSON.stringify(given)}`);
  }
  return seconds;
}

function gone(named: readonly SandboxInfo[]): SandboxError {
  const ids = named.map(({ id }) => id).join(', ');
  return new SandboxError('SANDBOX_LOST', `${ids}: no longer running. Try: cofferdam ls`, { ids });
}

function tableOf(usage: readonly Usage[]): string {
  return table(HEADINGS, usage.map(row));
}

function row({ info, stats, cpuPercent }: Usage): string[] {
  if (!stats) return [info.id, '-', '-', '-', '-', '-', '-', `${info.key} ${paint('yellow', 'does not answer')}`];
  const { memoryMb } = info.limits;
  return [
    info.id,
    cpuPercent === null ? '-' : `${cpuPercent.toFixed(1)}%`,
    `${bytes(stats.memoryBytes)}${memoryMb === undefined ? '' : ` / ${bytes(memoryMb * 1024 * 1024)}`}`,
    String(stats.pids),
    bytes(stats.workspaceBytes),
    bytes(stats.ioReadBytes),
    bytes(stats.ioWriteBytes),
    info.key,
  ];
}

function toJson({ info: { id, key, image, limits }, stats, cpuPercent }: Usage): object {
  return { id, key, image, limits, cpuPercent, ...stats };
}
