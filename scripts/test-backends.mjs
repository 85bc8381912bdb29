// `npm run test:backends`: the suites again, on every other way into a sandbox: through the engine, where root takes a
// shortcut otherwise, and without an engine, as whoever runs this and as an ordinary user.

import { command } from './lifetime.mjs';
import { testNamespaces } from './namespaces.mjs';
import { Steps } from './steps.mjs';
import { testEnvironment } from './test-environment.mjs';
import { Unavailable } from './unavailable.mjs';
import { build, installDependencies, prepareEngine, requireTools } from './workspace.mjs';

await command(async () => {
  const steps = new Steps();
  requireTools();
  const preparing = prepareEngine(steps);
  await installDependencies(steps);
  await build(steps);

  const { env, engine, notices } = await testEnvironment(steps, preparing);
  if (!engine) throw new Unavailable('Their images come from an engine.', 'Give it one, as for npm test.');
  if (process.getuid?.() === 0) {
    // Root reaches guests past the engine; everybody else, and every remote engine, has only this way.
    const through = { ...env, COFFERDAM_SHORTCUT: 'off' };
    await steps.run('jest, through the engine', 'npx', ['jest', '__test__/contract'], { env: through });
  }
  if (!env.COFFERDAM_NO_NAMESPACES) await testNamespaces(steps, engine.host, env);
  if (engine.started) await steps.time('stop the engine', engine.stop);

  console.log(`\n✓ passed\n${steps.summary()}`);
  for (const notice of notices) console.log(`\n${notice}`);
});
