// `npm test`: everything that must hold, from a fresh clone, and nothing left running afterwards.
//
//   npm test                 all of it
//   npm test -- <jest args>  build, then only the jest tests that match

import { fuzz } from './fuzz.mjs';
import { command } from './lifetime.mjs';
import { testNamespaces } from './namespaces.mjs';
import { ensureProgram, NATS, REGISTRY } from './programs.mjs';
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

  const { env, engine, skipped } = await testEnvironment(preparing);
  if (everything) await steps.run('cargo test', 'cargo', ['test', '--workspace'], { env });
  if (everything) await steps.time('fuzz', () => fuzz({ seconds: 60 }));
  await steps.run('jest', 'npx', ['jest', ...jestArgs], { env });
  if (everything && engine && process.getuid?.() === 0) {
    // Root reaches guests past the engine; everybody else, and every remote engine, has only this way.
    const through = { ...env, COFFERDAM_SHORTCUT: 'off' };
    await steps.run('jest, through the engine', 'npx', ['jest', '__test__/contract'], { env: through });
  }
  if (everything && engine && process.platform === 'linux') await testNamespaces(steps, engine.host, env);
  if (engine?.started) await steps.time('stop the engine', engine.stop);

  console.log(`\n✓ passed\n${steps.summary()}`);
  if (skipped) console.log(`\n${skipped}`);
});

/** Without an engine the Docker suites are skipped, loudly; in CI that is a failure. */
async function testEnvironment(preparing) {
  try {
    const engine = await preparing;
    const programs = {
      COFFERDAM_TEST_REGISTRY: await ensureProgram(REGISTRY),
      COFFERDAM_TEST_NATS: await ensureProgram(NATS),
    };
    const found = Object.fromEntries(Object.entries(programs).filter(([, program]) => program));
    return { engine, env: { DOCKER_HOST: engine.host, ...found } };
  } catch (error) {
    if (!(error instanceof Unavailable) || isCi()) throw error;
    const skipped = boxed(`The Docker suites were SKIPPED.\n\n${error.message}`);
    console.log(`\n${skipped}`);
    return { skipped, env: { COFFERDAM_NO_ENGINE: '1' } };
  }
}

function isCi() {
  return !['', '0', 'false'].includes(process.env.CI ?? '');
}
