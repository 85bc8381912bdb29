// `.ci/run`: everything, by the commands that people use, within half an hour on two processors of a bare machine.
//
// What all of them need is made once: one engine, and one build, which is the one that is released. What computes runs beside
// what waits. The commands see by COFFERDAM_RUN, a folder, that they are part of a run: `engine` in it has the engine's host
// once that and all packages are there; `installed` and `built` are there once npm's packages and the build are.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ensureTools } from './install/tools.mjs';
import { atEnd, command } from './lifetime.mjs';
import { buildGuest } from './release/guest.mjs';
import { buildShipped } from './release/shipped.mjs';
import { GUESTS } from './release/targets.mjs';
import { zig } from './release/toolchain.mjs';
import { Steps, timetable } from './steps.mjs';
import { getPackages } from './test-environment.mjs';
import { installDependencies, prepareEngine, ROOT, requireTools, toldLater } from './workspace.mjs';

/** What nobody waits for steps back behind what somebody waits for. */
const BACKGROUND = { nice: 19 };

await command(async () => {
  const began = Date.now();
  requireTools();
  mkdirSync('.cache', { recursive: true });
  const folder = mkdtempSync(path.join(ROOT, '.cache/run-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const times = path.join(folder, 'steps');
  process.env.COFFERDAM_STEPS = times;
  // What is missing here is a failure, not a suite that is left out.
  process.env.CI = 'true';
  // A panic names its line without it.
  process.env.CARGO_PROFILE_DEV_DEBUG = 'none';
  const steps = new Steps('.ci/run');
  try {
    await everything(steps, folder);
    console.log('\n✓ passed');
  } finally {
    console.log(`\n${timetable(times, began)}`);
  }
});

async function everything(steps, folder) {
  const preparing = prepareEngine(steps);
  const ready = (name, text = '') => writeFileSync(path.join(folder, name), text);
  const installing = toldLater(installDependencies(steps).then(() => ready('installed')));
  const toolchain = toldLater(steps.time('linker for every Linux', zig));
  const tools = toldLater(steps.time('tools of test:install', ensureTools));
  const packages = getPackages(preparing);
  const engine = toldLater(
    preparing.then(async (engine) => {
      await Promise.all([toolchain, ...Object.values(packages)]);
      ready('engine', engine.host);
      return engine;
    }),
  );

  const guest = GUESTS.find(({ cpu }) => cpu === process.arch);
  await steps.time('guest', () => buildGuest(guest.cpu));
  // For all that embeds it from here on.
  process.env[guest.variable] = guest.file;
  process.env.COFFERDAM_RUN = folder;
  const build = async () => {
    await Promise.all([toolchain, installing]);
    await steps.time('addon', buildShipped);
    await steps.run('dist', 'npm', ['run', 'build:ts']);
    ready('built');
  };
  const building = toldLater(build());
  const fuzzBuilt = toldLater(
    building.then(() => steps.beside('fuzz, built', 'npm', ['run', 'fuzz', '--', '--seconds', '0'], BACKGROUND)),
  );
  const test = async () => {
    await steps.run('npm test', 'npm', ['test']);
    await steps.run('npm run test:backends', 'npm', ['run', 'test:backends']);
    await Promise.all([fuzzBuilt, tools]);
    await Promise.all([
      steps.beside('npm run fuzz', 'npm', ['run', 'fuzz', '--', '--seconds', '60']),
      steps.run('npm run test:install', 'npm', ['run', 'test:install']),
    ]);
    await steps.run('npm run release:check -- --brief', 'npm', ['run', 'release:check', '--', '--brief']);
  };
  await Promise.all([engine, building, test()]);
  const { started, stop } = await engine;
  if (started) await steps.time('stop the engine', stop);
}
