// What the tests of this machine can be given: an engine with images, programs, namespaces, a terminal. What is missing is
// said loudly, now and at the end; in CI it is a failure.

import { ensureNamespaces } from './namespaces.mjs';
import { buildProbe } from './probe.mjs';
import { ensureProgram, ensureShells, ensureTmux, NATS, PODMAN, REGISTRY } from './programs.mjs';
import { boxed } from './steps.mjs';
import { Unavailable } from './unavailable.mjs';

/**
 * Of a checkout that is built.
 *
 * @param {Promise<import('./engine.mjs').Engine>} preparing
 * @returns {Promise<{ engine?: import('./engine.mjs').Engine, env: Record<string, string>, notices: string[] }>} the
 *   environment of jest and of cargo's tests, and what had to be left out
 */
export async function testEnvironment(steps, preparing) {
  const probe = await buildProbe(steps);
  await ensureShells();
  const notices = [];
  const orSkipped = async (what, variable, get) => {
    try {
      return await get();
    } catch (error) {
      if (!(error instanceof Unavailable) || isCi()) throw error;
      const notice = boxed(`${what}\n\n${error.message}`);
      console.log(`\n${notice}`);
      notices.push(notice);
      return { [variable]: '1' };
    }
  };
  let engine;
  const env = {
    ...(probe && { COFFERDAM_TEST_PROBE: probe }),
    ...(await orSkipped('The Docker suites were SKIPPED.', 'COFFERDAM_NO_ENGINE', async () => {
      engine = await preparing;
      return { DOCKER_HOST: engine.host, ...(await programs()) };
    })),
    ...(await orSkipped('The suites of namespaces were SKIPPED.', 'COFFERDAM_NO_NAMESPACES', ensureNamespaces)),
    ...(await orSkipped('The suites in a terminal were SKIPPED.', 'COFFERDAM_NO_TMUX', ensureTmux)),
  };
  return { engine, env, notices };
}

async function programs() {
  const found = {
    COFFERDAM_TEST_REGISTRY: await ensureProgram(REGISTRY),
    COFFERDAM_TEST_NATS: await ensureProgram(NATS),
    COFFERDAM_TEST_PODMAN: await ensureProgram(PODMAN),
  };
  return Object.fromEntries(Object.entries(found).filter(([, program]) => program));
}

function isCi() {
  return !['', '0', 'false'].includes(process.env.CI ?? '');
}
