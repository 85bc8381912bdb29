// The soak: four hosts at random in eight sandboxes that they share, while hosts are killed and sandboxes are closed.
// Nothing but that may go wrong, nothing may grow, and nothing may be left. Needs DOCKER_HOST, or an engine at its usual
// place, and what is built already.
//
//   npm run soak -- --minutes 30

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { atEnd, command } from '../scripts/lifetime.mjs';
import { machine } from './machine.mjs';
import { leftOver, sweep } from './ring.mjs';
import { Crew } from './soak/crew.mjs';
import { grown, line } from './soak/minute.mjs';
import { Tally } from './soak/tally.mjs';

const RESULTS = fileURLToPath(new URL('./results/', import.meta.url));
const LABEL = 'soak';

/** Only these are killed and closed: the others show what grows over the whole time. */
const MORTAL_HOSTS = [2, 3];
const MORTAL_SANDBOXES = [4, 5, 6, 7];

const MINUTE_MS = 60_000;
const CLOSE_AT_MS = 10_000;
/** Not late: what the host had spawned ends 10 s after it, and must be gone when the minute's figures are taken. */
const KILL_AT_MS = 25_000;
const CLOSE_AGAIN_AT_MS = 40_000;
const KILLS_WHILE_CLOSING_EVERY = 3;

/** The engine removes a container after its end, not with it. */
const GONE_WITHIN_MS = 10_000;

await command(async () => {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '30' } } });
  const minutes = Number(values.minutes);
  if (!(Number.isInteger(minutes) && minutes >= 2)) throw new Error('--minutes must be a whole number from 2 on');
  const runId = `${process.pid}-${Date.now()}`;
  const tally = new Tally();
  const crew = new Crew(runId, (heard, place) => tally.hear(heard, place));
  atEnd(() => sweep(runId, LABEL));
  atEnd(() => crew.kill());

  const began = performance.now();
  crew.start();
  const history = [];
  for (let minute = 1; minute <= minutes; minute += 1) {
    const at = (ms) => sleep(Math.max(0, began + (minute - 1) * MINUTE_MS + ms - performance.now()));
    await provoke(crew, tally, minute, at);
    await at(MINUTE_MS);
    history.push(await look(crew, tally, minute));
    console.log(line(history.at(-1)));
  }

  await crew.askAll('pause');
  await crew.ask(0, 'endScopes');
  const stuckHosts = await crew.finish();
  const left = { containers: await containersLeft(runId), children: children(), stuckHosts };
  // From a third of the time on: until then a host still grows to its working size.
  const growths = grown(history[Math.ceil(minutes / 3) - 1], history.at(-1));
  const summary = { date: new Date().toISOString(), machine: await machine(), minutes, ...tally, growths, left };
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(`${RESULTS}soak.json`, `${JSON.stringify({ ...summary, history }, null, 2)}\n`);
  return verdict(summary);
});

async function provoke(crew, tally, minute, at) {
  const victim = any(MORTAL_HOSTS);
  const kill = async (closing) => {
    await crew.replace(victim);
    tally.killed += 1;
    // The new one must know it, too.
    if (closing !== undefined) await crew.ask(victim, 'disturb', { index: closing });
  };
  const close = (meanwhile) => closeOne(crew, tally, any(MORTAL_SANDBOXES), victim, meanwhile);
  await at(CLOSE_AT_MS);
  await close();
  await at(KILL_AT_MS);
  if (minute % KILLS_WHILE_CLOSING_EVERY === 0) await close(kill);
  else await kill();
  await at(CLOSE_AGAIN_AT_MS);
  await close();
}

/** All are told before and after: what a host hears of it in between, it did not do wrong. */
async function closeOne(crew, tally, index, victim, meanwhile = async () => {}) {
  await crew.askAll('disturb', { index });
  const places = crew.pids.map((_, place) => place).filter((place) => place !== victim);
  const closer = any(places);
  const closing = crew.ask(closer, 'close', { index });
  await meanwhile(index);
  await closing.catch(({ message }) => tally.hear({ failed: { kind: 'close', sandbox: index, message } }, closer));
  tally.closed += 1;
  await crew.askAll('calm', { index });
}

/** While all hosts stand still: what is there then is there to stay. */
async function look(crew, tally, minute) {
  await crew.askAll('pause');
  const guests = await crew.ask(0, 'guests');
  const figures = await crew.askAll('figures');
  await crew.askAll('resume');
  const hosts = figures.map((host, place) => ({ id: crew.pids[place], ...host }));
  return { minute, operations: tally.total, errors: tally.errors.length, hosts, guests };
}

async function containersLeft(runId) {
  const deadline = performance.now() + GONE_WITHIN_MS;
  for (;;) {
    const left = await leftOver(runId, LABEL);
    if (left.length === 0 || performance.now() > deadline) {
      return left.map(({ Names, State }) => ({ name: Names[0], state: State }));
    }
    await sleep(200);
  }
}

function children() {
  return readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

function verdict({ errors, growths, left }) {
  const leaks = growths.filter(({ leaks }) => leaks);
  console.log(`\n${JSON.stringify({ growths, left }, null, 2)}`);
  console.log(`${errors.length} errors that nobody provoked, ${leaks.length} leaks`);
  const somethingLeft = Object.values(left).some(({ length }) => length > 0);
  return errors.length > 0 || leaks.length > 0 || somethingLeft ? 1 : 0;
}

function any(list) {
  return list[Math.floor(Math.random() * list.length)];
}
