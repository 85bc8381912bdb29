// `npm run test:backends`: the suites again, on every other way into a sandbox: through the engine, where root takes a
// shortcut otherwise, and without an engine, as whoever runs this and as an ordinary user. On one class of images: what
// differs between classes is tested by `npm test`.

import { command } from './lifetime.mjs';
import { testAsOrdinaryUser, testNamespaces } from './namespaces.mjs';
import { Steps } from './steps.mjs';
import { testEnvironment } from './test-environment.mjs';
import { Unavailable } from './unavailable.mjs';
import { build, installDependencies, prepareEngine, requireTools, toldLater } from './workspace.mjs';

await command(async () => {
  const steps = new Steps('test:backends');
  requireTools();
  const preparing = prepareEngine(steps);
  const installing = installDependencies(steps);
  const building = toldLater(installing.then(() => build(steps)));

  const { env, engine, notices } = await testEnvironment(steps, preparing, building);
  if (!engine) throw new Unavailable('Their images come from an engine.', 'Give it one, as for npm test.');
  const oneClass = { ...env, COFFERDAM_TEST_IMAGES: 'alpine' };
  const hasNamespaces = !env.COFFERDAM_NO_NAMESPACES;
  if (process.getuid?.() === 0) await asRootOnly(steps, engine.host, oneClass, hasNamespaces);
  if (hasNamespaces) await testNamespaces(steps, engine.host, oneClass);
  if (engine.started) await steps.time('stop the engine', engine.stop);

  console.log(`\n✓ passed\n${steps.summary()}`);
  for (const notice of notices) console.log(`\n${notice}`);
});

async function asRootOnly(steps, host, env, hasNamespaces) {
  // Root reaches guests past the engine; everybody else, and every remote engine, has only this way.
  const through = { ...env, COFFERDAM_SHORTCUT: 'off' };
  await steps.beside('jest, through the engine', 'npx', ['jest', '__test__/contract'], { env: through });
  if (hasNamespaces) await testAsOrdinaryUser(steps, host, env);
}
