// `npm test`: everything that must hold, from a fresh clone, and nothing left running afterwards.
//
//   npm test                 all of it
//   npm test -- <jest args>  build, then only the jest tests that match
//
// The same suites on other ways into a sandbox are `npm run test:backends`.

import { command } from './lifetime.mjs';
import { Steps } from './steps.mjs';
import { testEnvironment } from './test-environment.mjs';
import { build, installDependencies, prepareEngine, requireTools } from './workspace.mjs';

const jestArgs = process.argv.slice(2);
const everything = jestArgs.length === 0;

await command(async () => {
  const steps = new Steps();
  requireTools();
  const preparing = prepareEngine(steps);

  const installing = installDependencies(steps);
  if (everything) {
    await steps.run('cargo fmt', 'cargo', ['fmt', '--all', '--check']);
    await steps.run('cargo clippy', 'cargo', 'clippy --workspace --all-targets -- -D warnings'.split(' '));
  }
  await installing;
  if (everything) {
    await steps.run('typescript', 'npm', ['run', 'check']);
    await steps.run('lint', 'npm', ['run', 'lint']);
  }
  await build(steps);
  if (everything) await steps.run('API reference', 'npm', ['run', 'docs:api', '--', '--check']);

  const { env, engine, notices } = await testEnvironment(steps, preparing);
  if (everything) await steps.run('cargo test', 'cargo', ['test', '--workspace'], { env });
  await steps.run('jest', 'npx', ['jest', ...jestArgs], { env });
  if (engine?.started) await steps.time('stop the engine', engine.stop);

  console.log(`\n✓ passed\n${steps.summary()}`);
  for (const notice of notices) console.log(`\n${notice}`);
});
