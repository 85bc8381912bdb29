// `npm test`: everything that must hold, from a fresh clone, and nothing left running afterwards.
//
//   npm test                 all of it
//   npm test -- <jest args>  build, then only the jest tests that match
//
// The same suites on other ways into a sandbox are `npm run test:backends`.

import { command } from './lifetime.mjs';
import { Steps } from './steps.mjs';
import { testEnvironment } from './test-environment.mjs';
import { build, installDependencies, prepareEngine, requireTools, toldLater } from './workspace.mjs';

const jestArgs = process.argv.slice(2);
const everything = jestArgs.length === 0;

/** Compilers leave the processors to tests, which wait for an engine much of their time. */
const BACKGROUND = { nice: 19 };

await command(async () => {
  const steps = new Steps('test');
  requireTools();
  const preparing = prepareEngine(steps);
  const installing = installDependencies(steps);
  const building = toldLater(installing.then(() => build(steps)));
  const environment = toldLater(testEnvironment(steps, preparing, building));
  const jest = environment.then(({ env }) => steps.run('jest', 'npx', ['jest', ...jestArgs], { env }));
  await Promise.all([jest, everything && check(steps, { installing, building })]);
  const { env, engine, notices } = await environment;
  // After jest: both load the machine, and tests of limits and process trees are sensitive to that.
  if (everything) await steps.run('cargo test', 'cargo', ['test', '--workspace'], { env });
  if (engine?.started) await steps.time('stop the engine', engine.stop);

  console.log(`\n✓ passed\n${steps.summary()}`);
  for (const notice of notices) console.log(`\n${notice}`);
});

/** All that needs no sandbox, one after the other, beside the build and jest. */
async function check(steps, { installing, building }) {
  await steps.beside('cargo fmt', 'cargo', ['fmt', '--all', '--check']);
  await installing;
  await steps.beside('typescript', 'npm', ['run', 'check']);
  await steps.beside('lint', 'npm', ['run', 'lint']);
  // Jest waits for the build, and leaves processors idle afterwards.
  await building;
  await steps.beside('API reference', 'npm', ['run', 'docs:api', '--', '--check']);
  const clippy = 'clippy --workspace --all-targets -- -D warnings'.split(' ');
  await steps.beside('cargo clippy', 'cargo', clippy, BACKGROUND);
  await steps.beside('cargo test, built', 'cargo', ['test', '--workspace', '--no-run'], BACKGROUND);
}
