/**
 * `cofferdam events`: what happens to sandboxes, whoever made them.
 *
 * A manager tells of its own sandboxes alone. So those of others are found by looking at all of them again and again, which
 * touches none; what happens within one, its guest tells to a link.
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

const LOOK_AGAIN_MS = 1_000;

type Happening = Change | SandboxEvent;

const STYLES: Record<string, Style> = { opened: 'green', lost: 'red', oom: 'red', expiring: 'yellow', closed: 'dim' };

export const events = command({
  name: 'events',
  summary: 'Tell what happens to sandboxes, as it happens',
  about: `Without a name: which sandboxes of this engine are opened, paused, resumed, stopped and closed, seen by
looking each second; nothing is touched, and what opens and closes within a second is missed.

With names, or of all with --commands: also which commands begin and end in them, that one was killed
for memory, that a sandbox will soon end, and why it did. That takes a link to each, which a new one has
within a second, and one that has a link is no orphan: the orphan timeout counts from when this program
ends. Idle timeouts go on as they would.

Runs until Ctrl-C, or until all sandboxes that were named are gone.`,
  operands: [{ ...SANDBOX_OPERAND, optional: true, many: true }],
  flags: {
    commands: { type: 'boolean', about: 'Also what happens within the sandboxes, of all of them' },
    scope: { ...SESSION.scope, about: 'Only those of one: workflow:wf_1, agent:… or user:…', group: undefined },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam events --commands', about: 'What your agents do at the moment' },
    { line: 'cofferdam events 4f2a --json | jq .command', about: 'Of one sandbox, for a program: a line each' },
  ],
  async run({ flags, operands }) {
    const stray = (['commands', 'scope'] as const).find((name) => operands.length > 0 && flags[name] !== undefined);
    if (stray) throw new UsageError(`--${stray} is for all sandboxes, and some were named`);
    const scope = flags.scope === undefined ? undefined : (scopeFrom(flags.scope) as Scope);
    const signal = stopSignal();
    const manager = managerFrom(flags);
    const tell = flags.json
      ? (event: Happening) => printJson(event, 'line')
      : (event: Happening) => print(lineOf(event));
    const ids = await Promise.all(operands.map(async (name) => (await findInfo(manager, name)).id));
    if (ids.length > 0) await followNamed(manager, new Set(ids), tell, signal);
    else await followAll(manager, { scope, withCommands: flags.commands === true }, tell, signal);
    return EXIT.ok;
  },
});

/** Until all of them are gone. */
async function followNamed(
  manager: SandboxManager,
  ids: Set<string>,
  tell: (event: Happening) => void,
  signal: AbortSignal,
): Promise<void> {
  // Before the links, which are asked for what there is a listener for.
  const stream = manager.events({ signal });
  await Promise.all([...ids].map((id) => manager.get(id)));
  try {
    for await (const event of stream) {
      if (!isOurDoing(event)) tell(event);
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
  tell: (event: Happening) => void,
  signal: AbortSignal,
): Promise<void> {
  const ended = { byLink: new Set<string>(), byLook: new Set<string>() };
  if (withCommands) tellAll(manager.events({ signal }), tell, ended).catch(() => {});
  const linked = new Set<string>();
  const link = (infos: readonly SandboxInfo[]) => {
    if (!withCommands) return;
    for (const { id, state } of infos) {
      if (state !== 'running' || linked.has(id)) continue;
      linked.add(id);
      // One that is only starting is tried again at the next look; one that went away is seen to be gone.
      manager.get(id).catch(() => linked.delete(id));
    }
  };
  let before = await manager.list({ scope });
  link(before);
  while (await pause(LOOK_AGAIN_MS, signal)) {
    const now = await manager.list({ scope });
    link(now);
    for (const change of changesBetween(before, now)) {
      if (ended.byLink.delete(change.sandboxId)) continue;
      if (isEnd(change)) ended.byLook.add(change.sandboxId);
      tell(change);
    }
    before = now;
  }
}

/** Whichever is first tells that a sandbox has ended, the link to it or a look at the list; the other one does not. */
async function tellAll(
  stream: AsyncIterable<SandboxEvent>,
  tell: (event: Happening) => void,
  ended: { byLink: Set<string>; byLook: Set<string> },
): Promise<void> {
  for await (const event of stream) {
    if (isEnd(event) && event.sandboxId) {
      if (ended.byLook.delete(event.sandboxId)) continue;
      ended.byLink.add(event.sandboxId);
    }
    if (!isOurDoing(event)) tell(event);
  }
}

function isEnd({ type }: Happening): boolean {
  return type === 'closed' || type === 'lost';
}

/** That we found it is nobody's news. */
function isOurDoing({ type }: SandboxEvent): boolean {
  return type === 'resumed';
}

function lineOf({ type, at, sandboxId, key, ...details }: Happening): string {
  const known = Object.entries(details).filter(([, value]) => value !== undefined && value !== null && value !== false);
  const shown = known.map(([name, value]) => `${name}=${shownValue(value)}`);
  const style = STYLES[type];
  const word = type.padEnd(13);
  return [at.toISOString(), style ? paint(style, word) : word, sandboxId, key, ...shown].filter(Boolean).join(' ');
}

function shownValue(value: unknown): string {
  if (typeof value === 'number') return String(Math.round(value * 10) / 10);
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'string' && /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value);
}
