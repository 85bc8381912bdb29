// One host of the soak: a process with a manager of its own, which works at random in the sandboxes that all hosts share
// until it is told to finish. Ends by itself, with all sandboxes, when the soak that started it is gone.
//
//   fork('bench/soak/host.mjs', [<serial>, <run id>], { execArgv: ['--expose-gc'] })

import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxManager } from '../../index.mjs';
import { guestFigures, hostFigures } from '../figures.mjs';
import { OPERATIONS } from './operations.mjs';
import { SANDBOXES, Session, workflowOf } from './session.mjs';

const LANES = 2;
const MAX_PAUSE_MS = 40;
const TELL_MS = 1_000;

/** No operation takes so long by itself: after it, it hangs. */
const HANGS_AFTER_MS = 60_000;

const PORTS_EACH = 500;
const FIRST_PORT = 10_000;

const [serial, runId] = process.argv.slice(2);
const manager = new SandboxManager({ defaults: { image: 'python', labels: { soak: runId } } });
const sessions = Array.from({ length: SANDBOXES }, (_, index) => new Session(manager, runId, index));
const dice = Object.entries(OPERATIONS).flatMap(([kind, { weight }]) => Array(weight).fill(kind));

let count = 0;
let done = {};
let excused = {};
let finishing = false;
let gate = Promise.resolve();
let openGate = () => {};
const underWay = new Set();

const ANSWERS = {
  async pause() {
    gate = new Promise((resolve) => {
      openGate = resolve;
    });
    await Promise.all(underWay);
    tell();
  },
  async resume() {
    openGate();
  },
  async figures() {
    return hostFigures();
  },
  async guests() {
    const all = [];
    for (const session of sessions) {
      const sandbox = await session.open();
      all.push({ id: sandbox.id, ...(await guestFigures(sandbox)) });
    }
    return all;
  },
  async disturb({ index }) {
    sessions[index].disturb();
  },
  async close({ index }) {
    await (await sessions[index].open()).close();
  },
  async calm({ index }) {
    sessions[index].calm();
  },
  async endScopes() {
    for (const { index } of sessions) await manager.endScope({ workflow: workflowOf(runId, index) });
  },
  async finish() {
    finishing = true;
    openGate();
    await Promise.all(lanes);
    clearInterval(telling);
    tell();
    await manager.close();
  },
};

process.on('message', async ({ ask, id, ...details }) => {
  const answer = await orHangs(() => ANSWERS[ask](details)).then(
    (value) => ({ value }),
    (error) => ({ error: describe(error) }),
  );
  process.send({ answer: id, ...answer }, () => ask === 'finish' && process.disconnect());
});

process.on('disconnect', async () => {
  if (finishing) return;
  await ANSWERS.endScopes().catch(() => {});
  process.exit(1);
});

const telling = setInterval(tell, TELL_MS);
const lanes = Array.from({ length: LANES }, lane);

async function lane() {
  while (!finishing) {
    await gate;
    if (finishing) return;
    const work = operate(dice[Math.floor(Math.random() * dice.length)]);
    underWay.add(work);
    await work;
    underWay.delete(work);
    await sleep(Math.random() * MAX_PAUSE_MS);
  }
}

async function operate(kind) {
  count += 1;
  const session = sessions[Math.floor(Math.random() * sessions.length)];
  const own = { tag: `h${serial}-${count}`, port: FIRST_PORT + serial * PORTS_EACH + (count % PORTS_EACH) };
  const wasProvoked = session.watch();
  let sandbox;
  try {
    await orHangs(async () => {
      sandbox = await session.open();
      await OPERATIONS[kind].run(sandbox, own);
    });
    done[kind] = (done[kind] ?? 0) + 1;
  } catch (error) {
    const provoked = wasProvoked(error) && [error.code, error.details?.reason].filter(Boolean).join(' ');
    if (provoked) excused[provoked] = (excused[provoked] ?? 0) + 1;
    else process.send({ failed: { kind, sandbox: session.index, sandboxId: sandbox?.id, ...describe(error) } });
  }
}

async function orHangs(work) {
  let timer;
  const hangs = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hangs for ${HANGS_AFTER_MS / 1000} s`)), HANGS_AFTER_MS);
  });
  try {
    return await Promise.race([work(), hangs]);
  } finally {
    clearTimeout(timer);
  }
}

/** Often, because a host that is killed takes with it what it has not told. */
function tell() {
  process.send({ told: { done, excused } });
  done = {};
  excused = {};
}

function describe({ code, message, details, stack }) {
  return { code, message, details, line: /operations\.mjs:\d+/.exec(stack)?.[0] };
}
