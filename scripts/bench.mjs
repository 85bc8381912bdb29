// `npm run bench`: from a fresh clone to the table, the JSON and the chart, and nothing left running afterwards.
//
//   npm run bench                        all rows, as published
//   npm run bench -- exec files          only these
//   npm run bench -- --quick --no-build  does it work at all

import { command } from './lifetime.mjs';
import { Steps } from './steps.mjs';
import { build, installDependencies, prepareEngine, requireTools } from './workspace.mjs';

const IMAGES = ['ubuntu:22.04', 'python:3.11-slim', 'node:20-slim', 'alpine:3.19', 'cofferdam/empty:latest'];
const NO_BUILD = '--no-build';

await command(async () => {
  const args = process.argv.slice(2);
  const steps = new Steps();
  requireTools();
  const preparing = prepareEngine(steps, IMAGES);
  await installDependencies(steps);
  if (!args.includes(NO_BUILD)) await build(steps);
  const engine = await preparing;
  await steps.run('bench', process.execPath, ['bench/main.mjs', ...args.filter((arg) => arg !== NO_BUILD)], {
    env: { DOCKER_HOST: engine.host },
  });
  if (engine.started) await steps.time('stop the engine', engine.stop);
  console.log(`\n${steps.summary()}`);
});
