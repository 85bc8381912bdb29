/**
 * What doctor finds: one line each, and for each problem one command that fixes it.
 *
 * Ids never change: programs read them.
 */
import { SEE_DOCTOR } from '../../internal/call';

export const GROUPS = ['Versions', 'Environment', 'Engine', 'Namespaces', 'Disk', 'Sandboxes', 'Leftovers'] as const;

export type Group = (typeof GROUPS)[number];

/** A problem prevents sandboxes from opening; a warning does not. */
export type State = 'ok' | 'warning' | 'problem';

export interface Finding {
  readonly id: string;
  readonly group: Group;
  readonly state: State;
  /** One line, for people. */
  readonly text: string;
  /** A command that fixes it; `null` if nothing is wrong. */
  readonly cure: string | null;
  /** The same for programs. */
  readonly facts: Readonly<Record<string, unknown>>;
}

type Facts = Finding['facts'];

export function ok(group: Group, id: string, text: string, facts: Facts = {}): Finding {
  return { id, group, state: 'ok', text: oneLine(text), cure: null, facts };
}

export function faulty(
  state: 'warning' | 'problem',
  group: Group,
  id: string,
  text: string,
  cure: string,
  facts: Facts = {},
): Finding {
  return { id, group, state, text: oneLine(text), cure, facts };
}

/** In one line, without the advice to run doctor. */
function oneLine(text: string): string {
  return text
    .replace(SEE_DOCTOR, '')
    .trim()
    .replace(/\s*\n\s*/g, ' ');
}
