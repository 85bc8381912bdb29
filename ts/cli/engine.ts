/** The options that select where sandboxes run, and the manager for them. */
import { setTimeout } from 'node:timers/promises';
import type { SandboxManager } from '../manager';
import type { SandboxManagerOptions } from '../options';
import type { Flags, Given } from './command';
import { oneOf } from './parse';
import { Stopped, unlessStopped } from './stop';

export const BACKENDS = ['auto', 'docker', 'namespaces'] as const;

/** Longer than an engine takes to start a sandbox. A pull may take longer, and leaves none. */
const CLOSE_TIMEOUT_MS = 15_000;

const group = 'Where it runs';

export const ENGINE = {
  backend: {
    type: 'string',
    value: BACKENDS.join('|'),
    about: 'In containers, or without an engine (default: auto)',
    group,
    complete: BACKENDS,
  },
  host: {
    type: 'string',
    value: 'address',
    about: 'The engine: unix://…, tcp://…, ssh://… (default: as docker finds it)',
    group,
  },
} as const satisfies Flags;

/** A manager for the flags. It need not be closed: sandboxes that only it could find end with the program. */
export function managerFrom(flags: Given<typeof ENGINE>, options: SandboxManagerOptions = {}): SandboxManager {
  // Loaded late: it takes most of the start time, and help, completions and usage errors do without it.
  const { SandboxManager } = require('../manager') as typeof import('../manager');
  return new SandboxManager({
    ...(flags.backend === undefined ? {} : { backend: oneOf('--backend', BACKENDS, flags.backend) }),
    ...(flags.host === undefined ? {} : { docker: { host: flags.host } }),
    ...options,
  });
}

/**
 * Waits for what the manager creates. If that is stopped half-way, it closes the manager, so that nothing is left: a sandbox
 * that is just starting would otherwise stay for its orphan timeout, unknown to anyone.
 *
 * The signal is not given to the manager, which would reject at once and clean up in the background: this program would be
 * gone by then.
 */
export async function orNothing<T>(manager: SandboxManager, making: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await unlessStopped(making, signal);
  } catch (error) {
    if (error instanceof Stopped) await Promise.race([manager.close(), setTimeout(CLOSE_TIMEOUT_MS)]).catch(() => {});
    throw error;
  }
}
