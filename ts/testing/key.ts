/** The core's rules for session keys, which the fake follows without the addon. */

export const ISOLATED = 'isolated';

/** Whether a session of this name is never shared. */
export function isIsolated(session: string): boolean {
  return session === ISOLATED || session.startsWith(`${ISOLATED}-`);
}

/** `scope` is escaped already. */
export function toKey(scope: string, session: string): string {
  return `${scope}:${escaped(session)}`;
}

export function escaped(part: string): string {
  return part.replaceAll('%', '%25').replaceAll(':', '%3A');
}
