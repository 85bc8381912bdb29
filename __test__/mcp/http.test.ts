import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type McpHttpOptions, serveHttp } from 'cofferdam/mcp';
import { countProcesses, describeWithEngine, IMAGES, testManager, until } from '../support';
import { call, clientOver, isOnEngine, sandboxId, stdoutOf } from './client';

describeWithEngine('the MCP server over HTTP', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });
  const serving = (options: McpHttpOptions = {}) => serveHttp(manager, { port: 0, ...options });

  async function connect(url: string, options?: ConstructorParameters<typeof StreamableHTTPClientTransport>[1]) {
    const transport = new StreamableHTTPClientTransport(new URL(url), options);
    return { transport, client: await clientOver(transport) };
  }

  test('serves each client in a session of its own', async () => {
    await using server = await serving();
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
    const [ann, bob] = await Promise.all([connect(server.url), connect(server.url)]);
    expect(ann.transport.sessionId).not.toBe(bob.transport.sessionId);
    expect(ann.transport.sessionId).toMatch(/^[0-9a-f-]{36}$/);
    await call(ann.client, 'sandbox_fs_write', { path: 'mine.txt', content: 'ann' });
    await call(bob.client, 'sandbox_fs_write', { path: 'mine.txt', content: 'bob' });
    expect(await stdoutOf(ann.client, 'cat mine.txt')).toBe('ann');
    expect(await stdoutOf(bob.client, 'cat mine.txt')).toBe('bob');
    expect(server.clients).toBe(2);
  });

  test('streams output, and ends a cancelled command', async () => {
    await using server = await serving();
    const { client } = await connect(server.url);
    const sandbox = await manager.get(await sandboxId(client));
    const cancel = new AbortController();
    const heard: string[] = [];
    const onprogress = ({ message = '' }) => heard.push(message);
    const command = 'echo begun; sleep 765432';
    const running = call(client, 'sandbox_exec', { command }, { onprogress, signal: cancel.signal });
    await until(() => heard.join('').includes('begun'));
    cancel.abort('enough');
    await expect(running).rejects.toThrow('enough');
    await until(async () => (await countProcesses(sandbox, 'sleep 765432')) === 0);
    expect(await stdoutOf(client, 'echo well')).toBe('well\n');
  });

  test('ends the answer to a call that was cancelled, so that nothing stays open for it', async () => {
    await using server = await serving();
    const { client, transport } = await connect(server.url);
    const sandbox = await manager.get(await sandboxId(client));
    const post = (message: object) =>
      fetch(server.url, {
        method: 'POST',
        headers: {
          'Mcp-Session-Id': String(transport.sessionId),
          Accept: 'application/json, text/event-stream',
          'Content-Type': 'application/json',
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      });
    const params = { name: 'sandbox_exec', arguments: { command: 'sleep 543210' } };
    const answer = await post({ id: 'raw-1', method: 'tools/call', params });
    await until(async () => (await countProcesses(sandbox, 'sleep 543210')) > 0);
    await post({ method: 'notifications/cancelled', params: { requestId: 'raw-1' } });
    expect(await answer.text()).not.toContain('raw-1');
    await until(async () => (await countProcesses(sandbox, 'sleep 543210')) === 0);
  });

  test('closes a client’s sandbox before it answers DELETE, after which the session is not found', async () => {
    await using server = await serving();
    const { client, transport } = await connect(server.url);
    const id = await sandboxId(client);
    const headers = { 'Mcp-Session-Id': String(transport.sessionId), Accept: 'application/json, text/event-stream' };
    const deleted = await fetch(server.url, { method: 'DELETE', headers });
    expect(deleted.status).toBe(204);
    expect(await isOnEngine(manager, id)).toBe(false);
    expect(server.clients).toBe(0);
    expect((await fetch(server.url, { method: 'DELETE', headers })).status).toBe(404);
    await expect(client.listTools()).rejects.toMatchObject({ code: 404 });
  });

  test('lets the SDK’s own client end its session', async () => {
    await using server = await serving();
    const { client, transport } = await connect(server.url);
    const id = await sandboxId(client);
    await transport.terminateSession();
    expect(await isOnEngine(manager, id)).toBe(false);
  });

  test('closes the session of a client that vanished, its running command included', async () => {
    await using server = await serving({ clientIdleMs: 1000 });
    const { client } = await connect(server.url);
    const id = await sandboxId(client);
    const running = call(client, 'sandbox_exec', { command: 'sleep 1000' }).catch(() => {});
    const sandbox = await manager.get(id);
    await until(async () => (await countProcesses(sandbox, 'sleep 1000')) > 0);
    // Only its connections end; no DELETE is sent.
    await client.close();
    await running;
    await until(() => server.clients === 0);
    expect(await isOnEngine(manager, id)).toBe(false);
  });

  test('keeps the session of a client that only listens, or waits for a long call', async () => {
    await using server = await serving({ clientIdleMs: 1000 });
    const { client } = await connect(server.url);
    await sandboxId(client);
    expect(await stdoutOf(client, 'sleep 2; echo still here')).toBe('still here\n');
    // Its stream of notifications is open; twice the idle time passes in the sandbox of another client.
    const other = await connect(server.url);
    await stdoutOf(other.client, 'sleep 2');
    expect(await stdoutOf(client, 'echo here')).toBe('here\n');
    expect(server.clients).toBe(2);
  });

  test('closes all sessions when it is closed', async () => {
    const server = await serving();
    const clients = await Promise.all([connect(server.url), connect(server.url)]);
    const ids = await Promise.all(clients.map(({ client }) => sandboxId(client)));
    await server.close();
    for (const id of ids) expect(await isOnEngine(manager, id)).toBe(false);
    await expect(fetch(server.url)).rejects.toThrow();
    await server.close();
  });

  test('lets clients share a session by scope', async () => {
    await using server = await serving({ scope: { workflow: `wf_${process.pid}_http` } });
    const [ann, bob] = await Promise.all([connect(server.url), connect(server.url)]);
    await call(ann.client, 'sandbox_fs_write', { path: 'plan.txt', content: 'shared' });
    expect(await stdoutOf(bob.client, 'cat plan.txt')).toBe('shared');
    await ann.transport.terminateSession();
    expect(await stdoutOf(bob.client, 'cat plan.txt')).toBe('shared');
  });

  test('takes no more clients than it may', async () => {
    await using server = await serving({ maxClients: 1 });
    const first = await connect(server.url);
    await expect(connect(server.url)).rejects.toMatchObject({
      code: 503,
      message: expect.stringContaining('limit of 1 clients'),
    });
    await first.transport.terminateSession();
    const second = await connect(server.url);
    expect((await second.client.listTools()).tools.length).toBeGreaterThan(0);
  });
});
