/** Changes between two lists of all sandboxes. */
import type { SandboxInfo, SandboxState } from '../options';

export interface Change {
  readonly type: 'opened' | 'resumed' | 'paused' | 'stopped' | 'closed';
  readonly at: Date;
  readonly sandboxId: string;
  readonly key: string;
  readonly image: string;
}

const TYPES: Record<Exclude<SandboxState, 'warm'>, Change['type']> = {
  running: 'resumed',
  paused: 'paused',
  stopped: 'stopped',
};

/** Closed ones first, then all others, oldest first. Ignores warm sandboxes. */
export function changesBetween(before: readonly SandboxInfo[], now: readonly SandboxInfo[], at = new Date()): Change[] {
  const [old, present] = [before, now].map((all) => new Map(all.filter(isInUse).map((info) => [info.id, info])));
  const change = (type: Change['type'], { id, key, image }: SandboxInfo): Change => ({
    type,
    at,
    sandboxId: id,
    key,
    image,
  });
  const gone = [...(old?.values() ?? [])].filter(({ id }) => !present?.has(id));
  const others = [...(present?.values() ?? [])].flatMap((info) => {
    const state = old?.get(info.id)?.state;
    if (state === undefined) return [change('opened', info)];
    return state === info.state || info.state === 'warm' ? [] : [change(TYPES[info.state], info)];
  });
  return [...gone.map((info) => change('closed', info)), ...others];
}

function isInUse({ state }: SandboxInfo): boolean {
  return state !== 'warm';
}
