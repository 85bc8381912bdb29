/** Which backend a manager uses. */
import { SandboxError } from '../errors';

const BACKENDS = ['auto', 'docker', 'namespaces'] as const;

type Backend = (typeof BACKENDS)[number];

/**
 * The program's option, else the environment's, else `auto`. A program that names an engine's address or runtime means
 * Docker.
 */
export function backendOf(asked: unknown, engine: string | undefined, environment: NodeJS.ProcessEnv): Backend {
  const backend = asked ?? (engine === undefined ? environment.COFFERDAM_BACKEND || 'auto' : 'docker');
  const known = BACKENDS.find((name) => name === backend);
  if (known !== undefined) return known;
  const source = asked === undefined ? ' (from COFFERDAM_BACKEND)' : '';
  const message = `unknown backend ${JSON.stringify(backend)}${source}; use one of ${BACKENDS.join(', ')}`;
  throw new SandboxError('UNSUPPORTED', message, { backend });
}
