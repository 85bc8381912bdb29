// A gigabyte from a sandbox to a NATS object store and back, in a fresh Node process. The server is one of our own, on
// loopback and in a folder that goes with it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { atEnd } from '../../scripts/lifetime.mjs';
import { ensureProgram, NATS } from '../../scripts/programs.mjs';
import { summary } from '../measure.mjs';
import { output } from '../program.mjs';
import { labelsOf } from '../ring.mjs';
import { inFolder } from '../scratch.mjs';

const CARRIER = fileURLToPath(new URL('../tree-carrier.mjs', import.meta.url));
const BYTES = 1_000_000_000;

export async function staging({ quick, runId }) {
  const program = await ensureProgram(NATS);
  if (!program) throw new Error('nats-server is not here, and cannot be had');
  return inFolder('nats', (folder) => through(program, folder, quick ? BYTES / 10 : BYTES, runId));
}

async function through(program, folder, bytes, runId) {
  const port = await freePort();
  const server = spawn(program, ['-a', '127.0.0.1', '-p', String(port), '-js', '-sd', folder], { stdio: 'ignore' });
  const release = atEnd(() => server.kill('SIGKILL'));
  try {
    await answers(port);
    const store = { type: 'nats', servers: `nats://127.0.0.1:${port}`, bucket: 'bench', create: true };
    const args = [CARRIER, JSON.stringify(labelsOf(runId)), 'store', String(bytes), JSON.stringify(store)];
    const { publishMs, stageMs, growthBytes } = JSON.parse(await output(process.execPath, args));
    const row = (id, title, unit, value) => ({ id, title, unit, values: { cofferdam: summary([value]) } });
    const size = `${bytes / 1e9} GB`;
    return [
      row('publish', `publish ${size} to NATS`, 'MB/s', bytes / 1000 / publishMs),
      row('stage', `stage ${size} from NATS`, 'MB/s', bytes / 1000 / stageMs),
      row('staging-memory', '  peak growth of memory', 'MiB', growthBytes / 1024 ** 2),
    ];
  } finally {
    server.kill('SIGKILL');
    await once(server, 'exit');
    release();
  }
}

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

async function answers(port) {
  for (let tries = 0; tries < 200; tries += 1) {
    const socket = net.connect(port, '127.0.0.1');
    const isUp = await Promise.race([once(socket, 'connect'), once(socket, 'error')]).then(
      ([error]) => error === undefined,
      () => false,
    );
    socket.destroy();
    if (isUp) return;
    await sleep(50);
  }
  throw new Error('nats-server does not answer');
}
