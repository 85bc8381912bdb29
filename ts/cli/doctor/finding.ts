/**
 * What doctor finds: one line each, and for whatever is not well, the one command that mends it.
 *
 * Ids never change: programs read them.
 */
import { SEE_DOCTOR } from '../../internal/call';

export const GROUPS = ['Versions', 'Environment', 'Engine', 'Namespaces', 'Disk', 'Sandboxes', 'Leftovers'] as const;

export type Group = (typeof GROUPS)[number];

/** A problem keeps sandboxes from opening; a warning does not. */
export type State = 'ok' | 'warning' | 'problem';

export interface Finding {
  readonly id: string;
  readonly group: Group;
  readonly state: State;
  /** One line, in words. */
  readonly text: string;
  /** A command; `null` when all is well. */
  readonly cure: string | null;
  /** The same for programs. */
  readonly facts: Readonly<Record<string, unknown>>;
}

type Facts = Finding['facts'];

export function ok(group: Group, id: string, text: string, facts: Facts = {}): Finding {
  return { id, group, state: 'ok', text: oneLine(text), cure: null, facts };
}

export function unwell(
  state: 'warning' | 'problem',
  group: Group,
  id: string,
  text: string,
  cure: string,
  facts: Facts = {},
): Finding {
  return { id, group, state, text: oneLine(text), cure, facts };
}

/** As a line, without the advice to come here. */
function oneLine(text: string): string {
  return text
    .replace(SEE_DOCTOR, '')
    .trim()
    .replace(/\s*\n\s*/g, ' ');
}
