// What the tests of this machine can be given: an engine with images, programs, namespaces, a terminal. What is missing is
// said loudly, now and at the end; in CI it is a failure.

import { ensureNamespaces } from './namespaces.mjs';
import { buildProbe } from './probe.mjs';
import { ensureProgram, ensureShells, ensureTmux, NATS, PODMAN, REGISTRY } from './programs.mjs';
import { boxed } from './steps.mjs';
import { Unavailable } from './unavailable.mjs';
import { toldLater } from './workspace.mjs';

/**
 * Packages are got while the checkout is being built.
 *
 * @param {Promise<import('./engine.mjs').Engine>} preparing
 * @param {Promise<void>} building
 * @returns {Promise<{ engine?: import('./engine.mjs').Engine, env: Record<string, string>, notices: string[] }>} the
 *   environment of jest and of cargo's tests, and what had to be left out
 */
export async function testEnvironment(steps, preparing, building) {
  const getting = getPackages(preparing);
  await building;
  const probe = await buildProbe(steps);
  await getting.shells;
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
      return { DOCKER_HOST: engine.host, ...(await getting.programs) };
    })),
    ...(await orSkipped('The suites of namespaces were SKIPPED.', 'COFFERDAM_NO_NAMESPACES', ensureNamespaces)),
    ...(await orSkipped('The suites in a terminal were SKIPPED.', 'COFFERDAM_NO_TMUX', () => getting.tmux)),
  };
  return { engine, env, notices };
}

/**
 * All that the tests need of the machine's packages, beside an engine.
 *
 * @param {Promise<unknown>} preparing the engine: a run that prepares it for many commands has installed everything by then
 */
export function getPackages(preparing) {
  const free = process.env.COFFERDAM_RUN ? preparing.catch(() => {}) : Promise.resolve();
  return {
    shells: toldLater(free.then(ensureShells)),
    tmux: toldLater(free.then(ensureTmux)),
    programs: toldLater(preparing.then(programs)),
  };
}

async function programs() {
  const found = {
    COFFERDAM_TEST_REGISTRY: await ensureProgram(REGISTRY),
    COFFERDAM_TEST_NATS: await ensureProgram(NATS),
    COFFERDAM_TEST_PODMAN: await ensureProgram(PODMAN),
  };
  return Object.fromEntries(Object.entries(found).filter(([, program]) => program));
}

/** Whether what is missing is a failure. */
function isCi() {
  return !['', '0', 'false'].includes(process.env.CI ?? '');
}
