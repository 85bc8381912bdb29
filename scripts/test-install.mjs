// `npm run test:install`: the packages as they would be released, published to a throw-away registry, installed in empty
// projects and used from everywhere that people use packages from. Nothing of it is left afterwards.
//
//   npm run test:install                       everybody, on namespaces where there is Linux
//   npm run test:install -- --backend docker   on an engine
//   npm run test:install -- deno 'node.js 24'  only those whose name has one of these words
//   npm run test:install -- --keep             leave the projects, to look at them
//   npm run test:install -- --strict           fail when a new user waits too long for a first answer, too

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { CONSUMERS } from './install/consumers/index.mjs';
import { firstSandbox } from './install/first-sandbox.mjs';
import { Ground } from './install/ground.mjs';
import { startRegistry } from './install/registry.mjs';
import { packRelease } from './install/release.mjs';
import { table } from './install/table.mjs';
import { ensureTools } from './install/tools.mjs';
import { atEnd, command } from './lifetime.mjs';
import { ensureNamespaces } from './namespaces.mjs';
import { Steps, seconds } from './steps.mjs';
import { build, installDependencies, prepareEngine, ROOT, requireTools } from './workspace.mjs';

const { values: options, positionals: words } = parseArgs({
  options: { backend: { type: 'string' }, keep: { type: 'boolean' }, strict: { type: 'boolean' } },
  allowPositionals: true,
});
const backend =
  options.backend ?? process.env.COFFERDAM_BACKEND ?? (process.platform === 'linux' ? 'namespaces' : 'docker');
const IMAGES = { namespaces: 'host', docker: 'alpine:3.19' };

/** What a new user may have to wait for a first answer, on namespaces. A time is no test: it counts with --strict alone. */
const FIRST_ANSWER_MS = 3000;

await command(async () => {
  if (!IMAGES[backend]) throw new Error(`there is no backend "${backend}"; there is ${Object.keys(IMAGES).join(', ')}`);
  const chosen = CONSUMERS.filter(({ name }) => isMeant(name));
  if (chosen.length === 0 && !isMeant('first sandbox')) throw new Error(`nobody is called ${words.join(' or ')}`);

  const steps = new Steps();
  process.chdir(ROOT);
  await installDependencies(steps);
  if (!isBuilt()) {
    requireTools();
    await build(steps);
  }
  const { env, stop } = await onBackend(steps);
  // What npm tells its scripts is not for the projects: an installed package knows nothing of this checkout.
  for (const name of Object.keys(process.env)) if (/^npm_/i.test(name)) delete process.env[name];

  const folder = mkdtempSync(path.join(os.tmpdir(), 'cofferdam-install-'));
  if (options.keep) console.log(`everything stays in ${folder}`);
  else atEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  // So that what is cut in half, by us or by a program of ours, leaves nothing elsewhere.
  process.env.TMPDIR = path.join(folder, 'tmp');
  mkdirSync(process.env.TMPDIR);
  const [tools, release] = await Promise.all([
    steps.time('tools', ensureTools),
    steps.time('pack', () => packRelease(folder)),
  ]);
  const registry = await steps.time('registry', () => startRegistry(tools, path.join(folder, 'registry')));
  const ground = new Ground({
    tools,
    folder,
    registry,
    main: release.main,
    env: { ...env, COFFERDAM_STATE: path.join(folder, 'state') },
  });
  await steps.time('publish', () => publish(registry, release, ground.env));

  const rows = [];
  for (const consumer of chosen) rows.push(await serve(consumer, ground));
  const wait =
    words.length === 0 || isMeant('first sandbox')
      ? await steps.time('first sandbox', () => firstSandbox(ground))
      : undefined;
  rows.push(await serve({ name: 'no sandbox is left', version: '', visit: nothingLeft }, ground));
  await stop?.();

  console.log(`\n${table(rows)}\n`);
  if (wait) console.log(`${told(wait)}\n`);
  console.log(steps.summary());
  const isSlow = wait !== undefined && backend === 'namespaces' && wait.p50.togetherMs >= FIRST_ANSWER_MS;
  return rows.some(({ failure }) => failure) || (options.strict && isSlow) ? 1 : 0;
});

/** Whether there is something to pack, and to ask whether namespaces work. After a change in Rust, `npm run build` is the user's. */
function isBuilt() {
  return existsSync('dist/index.js') && readdirSync('.').some((name) => /^cofferdam\..*\.node$/.test(name));
}

function isMeant(name) {
  return words.length === 0 || words.some((word) => name.toLowerCase().includes(word.toLowerCase()));
}

/** What consumers are told of the backend, which must be there: an install that is not tried is not green. */
async function onBackend(steps) {
  const env = { COFFERDAM_BACKEND: backend, COFFERDAM_INSTALL_IMAGE: IMAGES[backend] };
  if (backend === 'namespaces') {
    await ensureNamespaces();
    return { env };
  }
  const engine = await prepareEngine(steps, [IMAGES.docker]);
  return { env: { ...env, DOCKER_HOST: engine.host }, stop: engine.stop };
}

/** The main package last: whoever sees it finds what it depends on. */
async function publish(registry, { publish: all }, env) {
  await Promise.all(all.slice(0, -1).map((file) => registry.publish(file, env)));
  await registry.publish(all.at(-1), env);
}

async function serve({ name, version, visit }, ground) {
  const began = Date.now();
  let failure;
  try {
    await visit(ground);
  } catch (error) {
    failure = error;
  }
  const tookMs = Date.now() - began;
  if (!options.keep) ground.clear();
  console.log(`${failure ? '✗' : '✓'} ${name} (${version}), ${seconds(tookMs)}`);
  if (failure) console.log(`  ${failure.message}\n`);
  return { name, version, failure, tookMs };
}

/** Asks a new program for every sandbox that any of them had. */
async function nothingLeft(ground) {
  const project = await ground.installed('left', { consumer: 'left' });
  await project.run(process.execPath, ['left.mjs', ...ground.sandboxes]);
}

function told({ p50, best, worst, rounds, load }) {
  const line = ({ installMs, answerMs, togetherMs }) =>
    `install ${seconds(installMs)}, first answer ${seconds(answerMs)}, together ${seconds(togetherMs)}`;
  const lines = [
    `From an empty folder to the first answer on ${backend}, ${rounds} rounds:`,
    `  p50    ${line(p50)}`,
    `  best   ${line(best)}`,
    `  worst  ${line(worst)}`,
  ];
  if (backend !== 'namespaces') return lines.join('\n');
  const mark = p50.togetherMs < FIRST_ANSWER_MS ? '✓' : '✗';
  const on = `a load of ${load.toFixed(1)} on ${os.availableParallelism()} cores before`;
  return [...lines, `  ${mark} p50 is to be under ${seconds(FIRST_ANSWER_MS)} on a quiet machine; ${on}`].join('\n');
}
