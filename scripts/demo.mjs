// `npm run demo`: from a fresh clone to an agent-like loop in a sandbox, and nothing left running afterwards.

import { command } from './lifetime.mjs';
import { Steps } from './steps.mjs';
import { build, installDependencies, prepareEngine, requireTools } from './workspace.mjs';

await command(async () => {
  const steps = new Steps();
  requireTools();
  const preparing = prepareEngine(steps, ['python:3.11-slim']);
  await installDependencies(steps);
  await build(steps);
  const engine = await preparing;
  await steps.run('demo', process.execPath, ['examples/agent-loop.mjs', ...process.argv.slice(2)], {
    env: { DOCKER_HOST: engine.host },
  });
  if (engine.started) await steps.time('stop the engine', engine.stop);
  console.log(`\n${steps.summary()}`);
});
