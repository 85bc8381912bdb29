import { once } from 'node:events';
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { type McpHttpOptions, serveHttp } from 'cofferdam/mcp';
import { testManager } from '../support';
import { clientOver } from './client';

const TOKEN = 'a-token-of-enough-characters';
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A request as no well-behaved client sends it. */
async function send(url: string, body: unknown, headers: OutgoingHttpHeaders = {}, method = 'POST'): Promise<Answer> {
  const sent = request(url, {
    method,
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
  });
  sent.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  const [response] = await once(sent, 'response');
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

describe('the door of the MCP server over HTTP', () => {
  const manager = testManager();
  const serving = (options: McpHttpOptions = {}) => serveHttp(manager, { port: 0, ...options });

  test('is open to clients on this machine, by any of its names', async () => {
    await using server = await serving();
    const { port } = new URL(server.url);
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'LOCALHOST', `[::1]:${port}`]) {
      expect((await send(server.url, INITIALIZE, { host })).status).toBe(200);
    }
  });

  test.each([
    'evil.example',
    'evil.example:8808',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil@localhost',
    '0.0.0.0',
  ])('is shut to a name that was made to point here: %p', async (host) => {
    await using server = await serving();
    const { status, body } = await send(server.url, INITIALIZE, { host });
    expect(status).toBe(403);
    expect(JSON.parse(body)).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { message: expect.stringContaining('not called') },
    });
    expect(server.clients).toBe(0);
  });

  test.each([
    'https://evil.example',
    'http://localhost.evil.example',
    'null',
    'http://evil.example:80',
    'http://localhost@evil.example',
  ])('is shut to pages from elsewhere: %p', async (origin) => {
    await using server = await serving();
    expect((await send(server.url, INITIALIZE, { origin })).status).toBe(403);
    expect((await send(server.url, '', { origin }, 'OPTIONS')).status).toBe(403);
    expect(server.clients).toBe(0);
  });

  test('is open to programs that say they are on loopback, but grants their pages nothing', async () => {
    await using server = await serving({ allowedOrigins: ['https://app.example'] });
    for (const origin of ['http://localhost:6274', 'http://127.0.0.1']) {
      const { status, headers } = await send(server.url, INITIALIZE, { origin });
      expect(status).toBe(200);
      expect(headers).not.toHaveProperty('access-control-allow-origin');
    }
  });

  test('is open to pages of an origin that is allowed, whose browser asks first and without the token', async () => {
    await using server = await serving({ token: TOKEN, allowedOrigins: ['https://app.example'] });
    const origin = 'https://app.example';
    const asked = await send(server.url, '', { origin, 'access-control-request-method': 'POST' }, 'OPTIONS');
    expect(asked.status).toBe(204);
    expect(asked.headers).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-methods': expect.stringContaining('POST'),
      'access-control-allow-headers': expect.stringContaining('Authorization'),
    });
    expect((await send(server.url, INITIALIZE, { origin })).status).toBe(401);
    const { status, headers } = await send(server.url, INITIALIZE, { origin, authorization: `Bearer ${TOKEN}` });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-expose-headers': 'Mcp-Session-Id',
    });
    for (const other of ['http://app.example', 'https://app.example.evil.example']) {
      const refused = await send(server.url, '', { origin: other }, 'OPTIONS');
      expect(refused.status).toBe(403);
      expect(refused.headers).not.toHaveProperty('access-control-allow-origin');
    }
  });

  test('opens to other names that are allowed', async () => {
    await using server = await serving({ allowedHosts: ['Box.Example'] });
    expect((await send(server.url, INITIALIZE, { host: 'box.example:80' })).status).toBe(200);
    expect((await send(server.url, INITIALIZE, { host: 'other.example' })).status).toBe(403);
  });

  test('wants the token, the whole token and nothing but the token', async () => {
    await using server = await serving({ token: TOKEN });
    const shown = [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      `Bearer ${TOKEN}x`,
      `Bearer ${TOKEN.slice(0, -1)}`,
      TOKEN,
      `Basic ${TOKEN}`,
      'Bearer ünïcode',
    ];
    for (const authorization of shown) {
      const { status, headers } = await send(
        server.url,
        INITIALIZE,
        authorization === undefined ? {} : { authorization: Buffer.from(authorization).toString('latin1') },
      );
      expect([authorization, status]).toEqual([authorization, 401]);
      expect(headers['www-authenticate']).toBe('Bearer');
    }
    expect(server.clients).toBe(0);
    const requestInit = { headers: { Authorization: `Bearer ${TOKEN}` } };
    const client = await clientOver(new StreamableHTTPClientTransport(new URL(server.url), { requestInit }));
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
  });

  test('wants the token for a session, too, whoever knows its id', async () => {
    await using server = await serving({ token: TOKEN });
    const authorization = `Bearer ${TOKEN}`;
    const { headers } = await send(server.url, INITIALIZE, { authorization });
    const id = String(headers['mcp-session-id']);
    expect((await send(server.url, '', { 'mcp-session-id': id }, 'DELETE')).status).toBe(401);
    expect(server.clients).toBe(1);
    expect((await send(server.url, '', { 'mcp-session-id': id, authorization }, 'DELETE')).status).toBe(204);
  });

  test.each(['0.0.0.0', '::', 'box.example'])('does not open beyond loopback without a token: %p', async (host) => {
    await expect(serving({ host })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('token'),
    });
  });

  test('opens beyond loopback with a token', async () => {
    await using server = await serving({ host: '0.0.0.0', token: TOKEN });
    const url = server.url.replace('0.0.0.0', '127.0.0.1');
    expect((await send(url, INITIALIZE, { host: 'box.example' })).status).toBe(401);
    expect((await send(url, INITIALIZE, { host: 'box.example', authorization: `Bearer ${TOKEN}` })).status).toBe(200);
  });

  test('wants a token that cannot be guessed', async () => {
    await expect(serving({ token: 'short' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test.each([
    ['nothing', '', 400, -32700],
    ['no JSON', '{"jsonrpc":', 400, -32700],
    ['bytes', Buffer.from([0xff, 0x00, 0xfe]), 400, -32700],
    ['null', 'null', 400, -32000],
    ['a number', '7', 400, -32000],
    ['an empty list', '[]', 400, -32000],
    ['deep nesting', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 400, -32000],
    ['a call before the beginning', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, 400, -32000],
    ['an initialize without its params', { jsonrpc: '2.0', id: 1, method: 'initialize' }, 400, -32000],
  ])('answers %s with an error, and goes on', async (_, body, status, code) => {
    await using server = await serving();
    const answer = await send(server.url, body);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ jsonrpc: '2.0', id: null, error: { code } });
    expect(server.clients).toBe(0);
    expect((await send(server.url, INITIALIZE)).status).toBe(200);
  });

  test('answers garbage within a session with an error, and the session goes on', async () => {
    await using server = await serving();
    const { headers } = await send(server.url, INITIALIZE);
    const session = { 'mcp-session-id': String(headers['mcp-session-id']) };
    for (const body of ['{', '7', '[]]', '{"jsonrpc":"1.0"}', { jsonrpc: '2.0', method: 7 }]) {
      expect((await send(server.url, body, session)).status).toBe(400);
    }
    expect((await send(server.url, INITIALIZE, session)).status).toBe(400);
    const unknown = await send(server.url, { jsonrpc: '2.0', id: 2, method: 'no/such' }, session);
    expect(unknown.body).toContain('-32601');
    const listed = await send(server.url, { jsonrpc: '2.0', id: 3, method: 'tools/list' }, session);
    expect(listed.body).toContain('sandbox_exec');
    expect(server.clients).toBe(1);
  });

  test('does not read more than it may, announced or not', async () => {
    await using server = await serving({ maxBodyBytes: 1000 });
    const long = JSON.stringify({ ...INITIALIZE, padding: 'x'.repeat(1000) });
    expect((await send(server.url, long)).status).toBe(413);
    expect((await send(server.url, long, { 'transfer-encoding': 'chunked' })).status).toBe(413);
    expect((await send(server.url, INITIALIZE)).status).toBe(200);
  });

  test('keeps no session that did not begin as it should', async () => {
    await using server = await serving();
    expect((await send(server.url, INITIALIZE, { accept: 'text/html' })).status).toBe(406);
    expect((await send(server.url, INITIALIZE, { 'content-type': 'text/plain' })).status).toBe(415);
    expect(server.clients).toBe(0);
  });

  test('knows other paths, methods and sessions for what they are', async () => {
    await using server = await serving();
    expect((await send(server.url.replace('/mcp', '/'), INITIALIZE)).status).toBe(404);
    expect((await send(server.url, INITIALIZE, { 'mcp-session-id': 'guessed' })).status).toBe(404);
    expect((await send(server.url, '', {}, 'GET')).status).toBe(400);
    expect((await send(server.url, '', {}, 'DELETE')).status).toBe(400);
    expect((await send(server.url, '', {}, 'PUT')).status).toBe(405);
  });

  test('listens on IPv6, too', async () => {
    await using server = await serving({ host: '::1' });
    expect(server.url).toMatch(/^http:\/\/\[::1\]:\d+\/mcp$/);
    expect((await send(server.url, INITIALIZE)).status).toBe(200);
  });

  test('says what is wrong with its options before any client comes', async () => {
    await expect(serving({ include: ['sandbox_fly'] })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('sandbox_fly'),
    });
    await expect(serving({ maxClients: -1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(serving({ port: 70_000 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('says so when its port is taken', async () => {
    await using server = await serving();
    const port = Number(new URL(server.url).port);
    await expect(serving({ port })).rejects.toMatchObject({ message: expect.stringContaining(`${port}`) });
  });
});
