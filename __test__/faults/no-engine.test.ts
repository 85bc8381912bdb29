import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SandboxManager } from 'cofferdam';

describe('without an engine that answers', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-no-engine-'));
  const servers: Server[] = [];
  const sockets: Socket[] = [];

  /** Something on a socket that is no engine. */
  async function listen(name: string, onConnection: (socket: Socket) => void): Promise<string> {
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      onConnection(socket);
    });
    servers.push(server);
    const file = path.join(folder, name);
    await new Promise<void>((resolve) => server.listen(file, resolve));
    return `unix://${file}`;
  }

  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    for (const server of servers) server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const open = (host: string, options = {}) => new SandboxManager({ docker: { host } }).open(options);

  test('a socket that is not there: ENGINE_UNAVAILABLE, and what to do', async () => {
    const failing = open('unix:///nowhere/docker.sock');
    await expect(failing).rejects.toMatchObject({
      name: 'SandboxError',
      code: 'ENGINE_UNAVAILABLE',
      message: expect.stringContaining('set docker.host or DOCKER_HOST'),
      details: {
        host: 'unix:///nowhere/docker.sock',
        reason: 'missing',
        tried: [
          { host: 'unix:///nowhere/docker.sock', source: 'option', reason: 'missing', problem: expect.any(String) },
        ],
      },
    });
    // Whoever reads the message knows where to go next.
    await expect(failing).rejects.toThrow(/: npx cofferdam doctor$/);
  });

  test('an engine that hangs: ENGINE_UNAVAILABLE, for every method', async () => {
    const manager = new SandboxManager({ docker: { host: await listen('hangs', () => {}) } });
    await expect(manager.info()).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' });
    await manager.close();
  });

  test('an engine that hangs: the caller’s own time limit counts', async () => {
    const host = await listen('slow', () => {});
    await expect(open(host, { timeoutMs: 100 })).rejects.toMatchObject({ code: 'TIMED_OUT' });
    const reason = new Error('enough');
    await expect(open(host, { signal: AbortSignal.timeout(100) })).rejects.toMatchObject({ name: 'TimeoutError' });
    await expect(open(host, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test('something that talks, but not as an engine: ENGINE_UNAVAILABLE', async () => {
    const garbage = await listen('garbage', (socket) => socket.end('SSH-2.0-OpenSSH\r\n'));
    await expect(open(garbage)).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' });
    const refusing = await listen('refusing', (socket) =>
      socket.end('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'),
    );
    await expect(open(refusing)).rejects.toMatchObject({ code: 'ENGINE_UNAVAILABLE' });
  });

  test('an address that is none: INVALID_ARGUMENT', async () => {
    await expect(open('nonsense')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});
