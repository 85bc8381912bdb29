// `npm test`: everything that must hold, from a fresh clone, and nothing left running afterwards.
//
//   npm test                 all of it
//   npm test -- <jest args>  build, then only the jest tests that match

import { fuzz } from './fuzz.mjs';
import { command } from './lifetime.mjs';
import { ensureNamespaces, testNamespaces } from './namespaces.mjs';
import { buildProbe } from './probe.mjs';
import { ensureProgram, ensureShells, ensureTmux, NATS, PODMAN, REGISTRY } from './programs.mjs';
import { boxed, Steps } from './steps.mjs';
import { Unavailable } from './unavailable.mjs';
import { build, installDependencies, prepareEngine, requireTools } from './workspace.mjs';

const jestArgs = process.argv.slice(2);
const everything = jestArgs.length === 0;

await command(async () => {
  const steps = new Steps();
  requireTools();
  const preparing = prepareEngine(steps);

  await installDependencies(steps);
  if (everything) {
    await steps.run('cargo fmt', 'cargo', ['fmt', '--all', '--check']);
    await steps.run('cargo clippy', 'cargo', 'clippy --workspace --all-targets -- -D warnings'.split(' '));
    await steps.run('typescript', 'npm', ['run', 'check']);
    await steps.run('lint', 'npm', ['run', 'lint']);
  }
  await build(steps);
  if (everything) await steps.run('API reference', 'npm', ['run', 'docs:api', '--', '--check']);
  const probe = await buildProbe(steps);
  await ensureShells();

  const { env, engine, skipped } = await testEnvironment(preparing);
  if (probe) env.COFFERDAM_TEST_PROBE = probe;
  const missing = await missingNamespaces();
  if (missing) env.COFFERDAM_NO_NAMESPACES = '1';
  const untyped = await missingTmux();
  if (untyped) env.COFFERDAM_NO_TMUX = '1';
  if (everything) await steps.run('cargo test', 'cargo', ['test', '--workspace'], { env });
  if (everything) await steps.time('fuzz', () => fuzz({ seconds: 60 }));
  await steps.run('jest', 'npx', ['jest', ...jestArgs], { env });
  if (everything && engine && process.getuid?.() === 0) {
    // Root reaches guests past the engine; everybody else, and every remote engine, has only this way.
    const through = { ...env, COFFERDAM_SHORTCUT: 'off' };
    await steps.run('jest, through the engine', 'npx', ['jest', '__test__/contract'], { env: through });
  }
  if (everything && engine && !missing) await testNamespaces(steps, engine.host, env);
  if (engine?.started) await steps.time('stop the engine', engine.stop);

  console.log(`\n✓ passed\n${steps.summary()}`);
  for (const notice of [skipped, missing, untyped]) if (notice) console.log(`\n${notice}`);
});

/** Without an engine the Docker suites are skipped, loudly; in CI that is a failure. */
async function testEnvironment(preparing) {
  try {
    const engine = await preparing;
    const programs = {
      COFFERDAM_TEST_REGISTRY: await ensureProgram(REGISTRY),
      COFFERDAM_TEST_NATS: await ensureProgram(NATS),
      COFFERDAM_TEST_PODMAN: await ensureProgram(PODMAN),
    };
    const found = Object.fromEntries(Object.entries(programs).filter(([, program]) => program));
    return { engine, env: { DOCKER_HOST: engine.host, ...found } };
  } catch (error) {
    return { skipped: told('The Docker suites were SKIPPED.', error), env: { COFFERDAM_NO_ENGINE: '1' } };
  }
}

/** The same for a machine that has no namespaces for us. */
async function missingNamespaces() {
  try {
    await ensureNamespaces();
  } catch (error) {
    return told('The suites of namespaces were SKIPPED.', error);
  }
}

/** The same for a machine without a terminal to type at. */
async function missingTmux() {
  try {
    await ensureTmux();
  } catch (error) {
    return told('The suites in a terminal were SKIPPED.', error);
  }
}

/** Says now what is said again at the end; what is not merely unavailable, and everything in CI, ends the command. */
function told(what, error) {
  if (!(error instanceof Unavailable) || isCi()) throw error;
  const notice = boxed(`${what}\n\n${error.message}`);
  console.log(`\n${notice}`);
  return notice;
}

function isCi() {
  return !['', '0', 'false'].includes(process.env.CI ?? '');
}
