/** Options from environment variables. Options that the program sets take precedence. */
import { SandboxError } from '../errors';

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `30m`, `1.5h`, `never`; a number without a unit is milliseconds. */
export function duration(name: string, value: string | undefined): number | undefined {
  if (value === undefined || value.trim() === '') return undefined;
  if (value.trim() === 'never') return 0;
  const [, number, unit = 'ms'] = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?$/.exec(value.trim()) ?? [];
  if (number === undefined) {
    const message = `${name} must be a time such as 500ms, 90s, 30m or 4h, or never, not ${JSON.stringify(value)}`;
    throw new SandboxError('INVALID_ARGUMENT', message);
  }
  return Number(number) * (UNITS[unit] ?? 1);
}

/** The timeouts of sandboxes, if the program sets none. */
export function leaseFromEnvironment(environment: NodeJS.ProcessEnv) {
  return {
    idleTimeoutMs: duration('COFFERDAM_IDLE_TIMEOUT', environment.COFFERDAM_IDLE_TIMEOUT) ?? 30 * 60_000,
    maxLifetimeMs: duration('COFFERDAM_MAX_LIFETIME', environment.COFFERDAM_MAX_LIFETIME) ?? 4 * 3_600_000,
    orphanTimeoutMs: duration('COFFERDAM_ORPHAN_TIMEOUT', environment.COFFERDAM_ORPHAN_TIMEOUT) ?? 5 * 60_000,
  };
}
