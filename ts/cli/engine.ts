/** The options that say where sandboxes are, and the manager they make. */
import { setTimeout } from 'node:timers/promises';
import type { SandboxManager } from '../manager';
import type { SandboxManagerOptions } from '../options';
import type { Flags, Given } from './command';
import { oneOf } from './parse';
import { Stopped, unlessStopped } from './stop';

export const BACKENDS = ['auto', 'docker', 'namespaces'] as const;

/** Longer than an engine takes to start a sandbox; a pull may take as long as it likes, and leaves none. */
const PATIENCE_MS = 15_000;

const group = 'Where it runs';

export const ENGINE = {
  backend: {
    type: 'string',
    value: BACKENDS.join('|'),
    about: 'In containers, or without an engine; what there is, unless told',
    group,
    complete: BACKENDS,
  },
  host: {
    type: 'string',
    value: 'address',
    about: 'The engine: unix://…, tcp://…, ssh://…; found as docker finds it unless told',
    group,
  },
} as const satisfies Flags;

/** A manager as the flags say. It need not be closed: what only it could find ends with the program. */
export function managerFrom(flags: Given<typeof ENGINE>, options: SandboxManagerOptions = {}): SandboxManager {
  // Most of the program's start: help, completions and mistakes do without.
  const { SandboxManager } = require('../manager') as typeof import('../manager');
  return new SandboxManager({
    ...(flags.backend === undefined ? {} : { backend: oneOf('--backend', BACKENDS, flags.backend) }),
    ...(flags.host === undefined ? {} : { docker: { host: flags.host } }),
    ...options,
  });
}

/**
 * Waits for what the manager makes. Where that is stopped in the middle, nothing of it is left: a sandbox that was just being
 * started would stay for its orphan timeout otherwise, and nobody knows of it.
 *
 * The signal is not for the manager, which would answer at once and end the sandbox beside: this program is gone by then.
 */
export async function orNothing<T>(manager: SandboxManager, making: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await unlessStopped(making, signal);
  } catch (error) {
    if (error instanceof Stopped) await Promise.race([manager.close(), setTimeout(PATIENCE_MS)]).catch(() => {});
    throw error;
  }
}
