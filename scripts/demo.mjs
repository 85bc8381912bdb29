// `npm run demo`: from a fresh clone to an agent-like loop in a sandbox, and nothing left running afterwards.

import { isInstalled } from './debian.mjs';
import { findEngine } from './engine.mjs';
import { command } from './lifetime.mjs';
import { Steps } from './steps.mjs';
import { build, installDependencies, prepareEngine, requireTools } from './workspace.mjs';

/** Linux without an engine has sandboxes of its own namespaces, with the Python that is on the machine. */
async function needsNoEngine() {
  if (process.platform !== 'linux' || process.env.DOCKER_HOST || !isInstalled('python3')) return false;
  return (await findEngine()).host === undefined;
}

await command(async () => {
  const steps = new Steps();
  requireTools();
  const preparing = (await needsNoEngine()) ? undefined : prepareEngine(steps, ['python:3.11-slim']);
  await installDependencies(steps);
  await build(steps);
  const engine = await preparing;
  await steps.run('demo', process.execPath, ['examples/agent-loop.mjs', ...process.argv.slice(2)], {
    env: engine ? { DOCKER_HOST: engine.host } : {},
  });
  if (engine?.started) await steps.time('stop the engine', engine.stop);
  console.log(`\n${steps.summary()}`);
});
