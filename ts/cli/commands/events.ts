/**
 * `cofferdam events`: prints what happens to sandboxes, whoever created them.
 *
 * A manager reports events of its own sandboxes only. Those of others are found by listing all sandboxes every second, which
 * touches none. What happens inside a sandbox, its guest reports to a link.
 */
import type { SandboxManager } from '../../manager';
import type { SandboxEvent, SandboxInfo, Scope } from '../../options';
import { command, EXIT, UsageError } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { findInfo, SANDBOX_OPERAND } from '../find';
import { pause } from '../pause';
import { JSON_FLAG, paint, print, printJson, type Style } from '../print';
import { type Change, changesBetween } from '../sandbox-changes';
import { SESSION, scopeFrom } from '../sandbox-options';
import { stopSignal } from '../stop';

const POLL_MS = 1_000;

type AnyEvent = Change | SandboxEvent;

const STYLES: Record<string, Style> = { opened: 'green', lost: 'red', oom: 'red', expiring: 'yellow', closed: 'dim' };

export const events = command({
  name: 'events',
  summary: 'Print what happens to sandboxes, live',
  about: `Without a name, prints which sandboxes of this engine are opened, paused, resumed, stopped and closed. It lists
them every second, touches none, and misses those that open and close within a second.

With names, or for all sandboxes with --commands, also prints which commands start and end in them, kills for lack of
memory, and when and why a sandbox ends. That takes a link to each sandbox, made within a second. A sandbox with a
link is no orphan: its orphan timeout counts from the end of this program. Idle timeouts are not affected.

Runs until Ctrl-C, or until all named sandboxes are gone.`,
  operands: [{ ...SANDBOX_OPERAND, optional: true, many: true }],
  flags: {
    commands: { type: 'boolean', about: 'Also what happens inside the sandboxes, for all of them' },
    scope: { ...SESSION.scope, about: 'Only those of workflow:wf_1, agent:… or user:…', group: undefined },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam events --commands', about: 'What your agents do at the moment' },
    { line: 'cofferdam events 4f2a --json | jq .command', about: 'One sandbox, for a program: a line per event' },
  ],
  async run({ flags, operands }) {
    const stray = (['commands', 'scope'] as const).find((name) => operands.length > 0 && flags[name] !== undefined);
    if (stray) throw new UsageError(`--${stray} cannot be used with named sandboxes`);
    const scope = flags.scope === undefined ? undefined : (scopeFrom(flags.scope) as Scope);
    const signal = stopSignal();
    const manager = managerFrom(flags);
    const show = flags.json ? (event: AnyEvent) => printJson(event, 'line') : (event: AnyEvent) => print(lineOf(event));
    const ids = await Promise.all(operands.map(async (name) => (await findInfo(manager, name)).id));
    if (ids.length > 0) await followNamed(manager, new Set(ids), show, signal);
    else await followAll(manager, { scope, withCommands: flags.commands === true }, show, signal);
    return EXIT.ok;
  },
});

/** Until all of them are gone. */
async function followNamed(
  manager: SandboxManager,
  ids: Set<string>,
  show: (event: AnyEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  // Before the links: guests report only while someone listens.
  const stream = manager.events({ signal });
  await Promise.all([...ids].map((id) => manager.get(id)));
  try {
    for await (const event of stream) {
      if (!isOwn(event)) show(event);
      if (isEnd(event)) ids.delete(event.sandboxId ?? '');
      if (ids.size === 0) return;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function followAll(
  manager: SandboxManager,
  { scope, withCommands }: { scope: Scope | undefined; withCommands: boolean },
  show: (event: AnyEvent) => void,
  signal: AbortSignal,
): Promise<void> {
  const ended = { byLink: new Set<string>(), byList: new Set<string>() };
  if (withCommands) showAll(manager.events({ signal }), show, ended).catch(() => {});
  const linked = new Set<string>();
  const link = (infos: readonly SandboxInfo[]) => {
    if (!withCommands) return;
    for (const { id, state } of infos) {
      if (state !== 'running' || linked.has(id)) continue;
      linked.add(id);
      // One that is still starting is tried again at the next poll; one that is gone is reported as closed.
      manager.get(id).catch(() => linked.delete(id));
    }
  };
  let before = await manager.list({ scope });
  link(before);
  while (await pause(POLL_MS, signal)) {
    const now = await manager.list({ scope });
    link(now);
    for (const change of changesBetween(before, now)) {
      if (ended.byLink.delete(change.sandboxId)) continue;
      if (isEnd(change)) ended.byList.add(change.sandboxId);
      show(change);
    }
    before = now;
  }
}

/** The end of a sandbox is reported once: by its link or by the list, whichever is first. */
async function showAll(
  stream: AsyncIterable<SandboxEvent>,
  show: (event: AnyEvent) => void,
  ended: { byLink: Set<string>; byList: Set<string> },
): Promise<void> {
  for await (const event of stream) {
    if (isEnd(event) && event.sandboxId) {
      if (ended.byList.delete(event.sandboxId)) continue;
      ended.byLink.add(event.sandboxId);
    }
    if (!isOwn(event)) show(event);
  }
}

function isEnd({ type }: AnyEvent): boolean {
  return type === 'closed' || type === 'lost';
}

/** Caused by our own link. */
function isOwn({ type }: SandboxEvent): boolean {
  return type === 'resumed';
}

function lineOf({ type, at, sandboxId, key, ...details }: AnyEvent): string {
  const known = Object.entries(details).filter(([, value]) => value !== undefined && value !== null && value !== false);
  const shown = known.map(([name, value]) => `${name}=${valueText(value)}`);
  const style = STYLES[type];
  const word = type.padEnd(13);
  return [at.toISOString(), style ? paint(style, word) : word, sandboxId, key, ...shown].filter(Boolean).join(' ');
}

function valueText(value: unknown): string {
  if (typeof value === 'number') return String(Math.round(value * 10) / 10);
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'string' && /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value);
}
