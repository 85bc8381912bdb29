// The bench: cofferdam, dockerode, the docker command and the bare host, in one run on one image. Needs DOCKER_HOST, or an
// engine at its usual place; `npm run bench` sees to that.

import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { assertNotEnding, atEnd, command } from '../scripts/lifetime.mjs';
import { chart } from './chart.mjs';
import { contestants } from './contestants/index.mjs';
import { machine } from './machine.mjs';
import { planner } from './measure.mjs';
import { parseOptions, USAGE } from './options.mjs';
import { table, targetTable } from './report.mjs';
import { sweep } from './ring.mjs';
import { ROWS } from './rows/index.mjs';
import { judge } from './targets.mjs';

const RESULTS = fileURLToPath(new URL('./results/', import.meta.url));

/**
 * What a row gets to work with.
 *
 * @typedef {object} Ring
 * @property {string} runId
 * @property {boolean} quick
 * @property {any[]} contestants started; `ours` is the first
 * @property {import('./contestants/cofferdam.mjs').Cofferdam} ours
 * @property {<Plan extends { rounds: number }>(plan: Plan) => Plan} planned a plan as this run wants it
 */

await command(async () => {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const runId = `${process.pid}-${Date.now()}`;
  atEnd(() => sweep(runId));

  const all = await contestants(runId);
  for (const [id, missing] of [
    ['docker-cli', 'no docker command'],
    ['namespaces', 'no sandboxes of namespaces'],
  ]) {
    if (!all.some((contestant) => contestant.id === id)) console.log(`${missing} here: its column is left out`);
  }
  for (const contestant of all) atEnd(() => contestant.stop());
  await Promise.all(all.map((contestant) => contestant.start()));

  const { rows, failures } = await measure({
    ...options,
    ring: { runId, quick: options.quick, contestants: all, ours: all[0], planned: planner(options.quick) },
  });
  const facts = await machine();
  const targets = judge(rows, failures);
  console.log(`\n${table(rows)}\n\n${targetTable(targets)}\n`);
  for (const { name, message } of failures) console.log(`✗ row ${name} broke: ${message}`);
  save(
    { date: new Date().toISOString(), machine: facts, quick: options.quick, rows, targets, failures },
    options.whole,
  );

  const missed = targets.filter(({ verdict }) => verdict === 'FAIL').length;
  return failures.length > 0 || (options.strict && missed > 0) ? 1 : 0;
});

/** A row that breaks is recorded in `failures`, and the others still run. */
async function measure({ rows: names, ring }) {
  const rows = [];
  const failures = [];
  for (const name of names) {
    const began = performance.now();
    process.stdout.write(`  ${name.padEnd(14)}`);
    try {
      rows.push(...(await ROWS[name](ring)));
      console.log(`${((performance.now() - began) / 1000).toFixed(1)} s`);
    } catch (error) {
      assertNotEnding();
      failures.push({ name, message: error.message });
      console.log(`broke: ${error.message}`);
    }
  }
  return { rows, failures };
}

/** Only a whole run replaces what is published, whether or not a row broke; git ignores the others. */
function save(run, whole) {
  mkdirSync(RESULTS, { recursive: true });
  const ending = whole ? '' : '.tmp';
  const picture = chart(run.rows, run.machine);
  writeFileSync(`${RESULTS}latest.json${ending}`, `${JSON.stringify(run, rounded, 2)}\n`);
  if (picture) writeFileSync(`${RESULTS}chart.svg${ending}`, picture);
  console.log(`written: bench/results/latest.json${ending}${picture ? ` and chart.svg${ending}` : ''}`);
}

function rounded(_, value) {
  return typeof value === 'number' ? Number(value.toPrecision(6)) : value;
}
