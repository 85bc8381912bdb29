// HTTP to a server in a container: through `forward()`, and through a port that the engine publishes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import Docker from 'dockerode';
import { compare, inverted, timed } from '../measure.mjs';
import { labelsOf } from '../ring.mjs';

const IMAGE = 'node:20-slim';
const PORT = 8080;
const AT_ONCE = 16;
const REQUESTS = 2_000;
const SMALL_BYTES = 100;
const BIG_BYTES = 200_000_000;
const SMALL = { rounds: 5 };
const BIG = { rounds: 5 };

const SERVER = `
const small = Buffer.alloc(${SMALL_BYTES}, 'x');
const piece = Buffer.alloc(1_000_000, 'x');
const server = require('node:http').createServer((request, response) => {
  if (request.url === '/small') return response.setHeader('content-length', small.length).end(small);
  response.setHeader('content-length', ${BIG_BYTES});
  let left = ${BIG_BYTES} / piece.length;
  const more = () => {
    while (left > 0) {
      left -= 1;
      if (!response.write(piece)) return response.once('drain', more);
    }
    response.end();
  };
  more();
});
// While it is the other's turn, no connection may run out of time.
server.keepAliveTimeout = 0;
server.listen(${PORT}, '0.0.0.0', () => console.log('listening'));
`;
const COMMAND = ['node', '-e', SERVER];

export async function forward({ ours, planned, runId }) {
  const ways = [];
  try {
    ways.push(await forwarded(ours));
    ways.push(await published(runId));
    const many = await compare(ways, (way) => timed(() => requests(way)), planned(SMALL));
    const big = await compare(ways, (way) => timed(() => get(way, '/big', BIG_BYTES)), planned(BIG));
    return [
      {
        id: 'forward-requests',
        title: `HTTP at a port, ${AT_ONCE} at once`,
        unit: 'req/s',
        values: rates(many, (ms) => (REQUESTS * 1000) / ms),
      },
      {
        id: 'forward-rate',
        title: '  one body of 200 MB',
        unit: 'MB/s',
        values: rates(big, (ms) => BIG_BYTES / 1000 / ms),
      },
    ];
  } finally {
    for (const { agent, close } of ways) {
      agent.destroy();
      await close();
    }
  }
}

async function forwarded(ours) {
  const sandbox = await ours.sandbox({ image: IMAGE });
  try {
    const server = await sandbox.spawn(COMMAND);
    await server.waitForPort(PORT);
    const web = await sandbox.forward(PORT);
    const close = async () => {
      await web.close();
      await sandbox.close();
    };
    return { id: 'cofferdam', port: web.hostPort, agent: agent(), close };
  } catch (error) {
    await sandbox.close();
    throw error;
  }
}

async function published(runId) {
  const container = await new Docker().createContainer({
    Image: IMAGE,
    Cmd: COMMAND,
    Labels: labelsOf(runId),
    ExposedPorts: { [`${PORT}/tcp`]: {} },
    HostConfig: { PortBindings: { [`${PORT}/tcp`]: [{ HostIp: '127.0.0.1' }] } },
  });
  const close = () => container.remove({ force: true });
  try {
    await container.start();
    await once(await container.logs({ follow: true, stdout: true }), 'data');
    const { NetworkSettings } = await container.inspect();
    const [{ HostPort }] = NetworkSettings.Ports[`${PORT}/tcp`];
    return { id: 'dockerode', port: Number(HostPort), agent: agent(), close };
  } catch (error) {
    await close();
    throw error;
  }
}

function agent() {
  return new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
}

async function requests(way) {
  let left = REQUESTS;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      await get(way, '/small', SMALL_BYTES);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

async function get({ port, agent }, path, bytes) {
  const [response] = await once(http.get({ port, agent, path }), 'response');
  let received = 0;
  response.on('data', (piece) => {
    received += piece.length;
  });
  await once(response, 'end');
  assert.equal(received, bytes);
}

function rates(values, convert) {
  return Object.fromEntries(Object.entries(values).map(([id, wall]) => [id, inverted(wall, convert)]));
}
