import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { PortForward, Sandbox } from 'cofferdam';
import { WebSocket } from 'ws';
import { describeWithEngine, testManager } from '../support';

/** Echoes, counts, and answers slowly where it is asked to. */
const SERVER = `
const http = require('node:http');
const server = http.createServer((request, response) => {
  if (request.url === '/hash') {
    const hash = require('node:crypto').createHash('sha256');
    request.on('data', (data) => hash.update(data)).on('end', () => response.end(hash.digest('hex')));
  } else if (request.url.startsWith('/bytes/')) {
    response.end(Buffer.alloc(Number(request.url.slice(7)), 'cofferdam'));
  } else response.end(request.method + ' ' + request.url + ' ' + (request.socket.seen = (request.socket.seen ?? 0) + 1));
});
server.listen(8080, '127.0.0.1');
const net = require('node:net');
net.createServer({ allowHalfOpen: true }, (socket) => {
  let all = '';
  socket.on('data', (data) => { all += data; }).on('end', () => socket.end('got ' + all.length + ' then the end'));
}).listen(8081, '127.0.0.1');
net.createServer((socket) => { socket.on('error', () => {}); setInterval(() => {}, 1000); socket.pause(); }).listen(8082, '127.0.0.1');
const { WebSocketServer } = require('./ws');
new WebSocketServer({ server }).on('connection', (socket) => {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
});
`;

describeWithEngine('ports', () => {
  const manager = testManager({ defaults: { image: 'node' } });
  let sandbox: Sandbox;
  let web: PortForward;

  beforeAll(async () => {
    sandbox = await manager.open();
    const ws = path.dirname(require.resolve('ws/package.json'));
    for (const file of ['index.js', 'package.json', ...readdirSync(`${ws}/lib`).map((name) => `lib/${name}`)]) {
      await sandbox.files.write(`ws/${file}`, readFileSync(`${ws}/${file}`));
    }
    await sandbox.files.write('server.js', SERVER);
    const server = await sandbox.spawn('node server.js');
    await Promise.all([8080, 8081, 8082].map((port) => server.waitForPort(port)));
    web = await sandbox.forward(8080);
  });

  test('are reached from the host with the network off', async () => {
    expect((await sandbox.info()).network).toBe(false);
    expect(web.url).toBe(`http://127.0.0.1:${web.hostPort}`);
    expect(await (await fetch(`${web.url}/hello`)).text()).toMatch(/^GET \/hello \d+$/);
  });

  test('keep connections alive, and serve many of them', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const get = (url: string, options: http.RequestOptions = {}) =>
      new Promise<string>((resolve, reject) => {
        http.get(`${web.url}${url}`, options, (response) => resolve(text(response))).on('error', reject);
      });
    for (const count of [1, 2, 3]) expect(await get('/again', { agent })).toBe(`GET /again ${count}`);
    agent.destroy();
    const answers = await Promise.all(Array.from({ length: 200 }, (_, index) => get(`/${index}`)));
    expect(answers).toEqual(answers.map((_, index) => expect.stringContaining(`GET /${index} `)));
  });

  test('carry large bodies both ways, byte for byte', async () => {
    const body = randomBytes(20_000_000);
    const sent = await fetch(`${web.url}/hash`, { method: 'POST', body });
    expect(await sent.text()).toBe(createHash('sha256').update(body).digest('hex'));
    const got = Buffer.from(await (await fetch(`${web.url}/bytes/20000000`)).arrayBuffer());
    expect(got.equals(Buffer.alloc(20_000_000, 'cofferdam'))).toBe(true);
  });

  test('end each way by itself', async () => {
    await using forward = await sandbox.forward(8081);
    const socket = net.connect({ port: forward.hostPort, host: '127.0.0.1', allowHalfOpen: true });
    socket.end('x'.repeat(100_000));
    expect(await text(socket)).toBe('got 100000 then the end');
  });

  test('carry WebSockets', async () => {
    const socket = new WebSocket(web.url.replace('http', 'ws'));
    await once(socket, 'open');
    for (const message of ['hello', 'ü'.repeat(100_000)]) {
      socket.send(message);
      const [data] = await once(socket, 'message');
      expect(String(data)).toBe(message);
    }
    const binary = randomBytes(1_000_000);
    socket.send(binary);
    const [data] = await once(socket, 'message');
    expect(binary.equals(data)).toBe(true);
    socket.close();
    await once(socket, 'close');
  });

  test('hold a sender back when the server does not read, and nobody else', async () => {
    await using forward = await sandbox.forward(8082);
    const socket = net.connect(forward.hostPort, '127.0.0.1');
    const block = Buffer.alloc(1_000_000);
    for (let sent = 0; sent < 100; sent++) socket.write(block);
    // Whatever the kernel takes on the way, it is not all of it: the rest waits in the sender.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(socket.writableLength).toBeGreaterThan(0);
    expect(await (await fetch(`${web.url}/meanwhile`)).text()).toContain('/meanwhile');
    socket.destroy();
  });

  test('refuse where nobody listens, and after they were closed', async () => {
    await using nobody = await sandbox.forward(9);
    await expect(fetch(nobody.url)).rejects.toThrow('fetch failed');
    const closed = await sandbox.forward(8080);
    const socket = net.connect(closed.hostPort, '127.0.0.1');
    await once(socket, 'connect');
    const ended = new Promise((resolve) => socket.on('error', () => {}).on('close', resolve));
    await closed.close();
    await closed.close();
    await ended;
    await expect(fetch(closed.url)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  });

  test('stay open while nobody holds on to them', async () => {
    const { url } = await sandbox.forward(8080);
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    for (let round = 0; round < 3; round++) {
      collect();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await (await fetch(`${url}/later`)).text()).toContain('/later');
  });

  test('can be asked for by number, once', async () => {
    await using first = await sandbox.forward(8080);
    await expect(sandbox.forward(8080, { hostPort: first.hostPort })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('hostPort'),
    });
    for (const port of [0, -1, 65_536, 1.5, '80' as unknown as number]) {
      await expect(sandbox.forward(port)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
  });

  test('waitForPort says when the process ended, or took too long', async () => {
    const failing = await sandbox.spawn('echo no config >&2; exit 3');
    await expect(failing.waitForPort(9_999)).rejects.toMatchObject({
      code: 'PROCESS_NOT_FOUND',
      message: expect.stringContaining('no config'),
      details: { exitCode: 3 },
    });
    const idle = await sandbox.spawn('sleep 1000');
    await expect(idle.waitForPort(9_999, { timeoutMs: 100 })).rejects.toMatchObject({ code: 'TIMED_OUT' });
    const reason = new Error('enough');
    await expect(idle.waitForPort(9_999, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await idle.kill();
  });
});
