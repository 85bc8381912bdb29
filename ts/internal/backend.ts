/** Which backend a manager asks for. */
import { SandboxError } from '../errors';

const BACKENDS = ['auto', 'docker', 'namespaces'] as const;

type Backend = (typeof BACKENDS)[number];

/**
 * What the program says, else what the environment says, else the best there is. A program that names an engine, or a
 * runtime that only engines have, has said it.
 */
export function backendOf(asked: unknown, engine: string | undefined, environment: NodeJS.ProcessEnv): Backend {
  const backend = asked ?? (engine === undefined ? environment.COFFERDAM_BACKEND || 'auto' : 'docker');
  const known = BACKENDS.find((name) => name === backend);
  if (known !== undefined) return known;
  const source = asked === undefined ? ' of COFFERDAM_BACKEND' : '';
  const message = `there is no backend ${JSON.stringify(backend)}${source}; use one of ${BACKENDS.join(', ')}`;
  throw new SandboxError('UNSUPPORTED', message, { backend });
}
