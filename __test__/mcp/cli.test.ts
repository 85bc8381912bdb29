import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { version } from 'cofferdam';
import { countProcesses, describeWithEngine, IMAGES, testManager, unique, until } from '../support';
import { call, clientOver, isOnEngine, sandboxId, stdoutOf } from './client';

const MAIN = path.resolve(__dirname, '../../dist/cli/main.js');
const ENV = process.env as Record<string, string>;

const INITIALIZE = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'raw', version: '1' },
};

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

function cofferdam(args: string[], options: { main?: string; env?: NodeJS.ProcessEnv } = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [options.main ?? MAIN, ...args],
      { env: options.env ?? ENV },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
      },
    );
    child.stdin?.end();
  });
}

describe('the cofferdam command', () => {
  test('shows its version and its commands', async () => {
    expect(await cofferdam(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
    for (const flag of ['--help', '-h', 'help']) {
      expect(await cofferdam([flag])).toMatchObject({ code: 0, stdout: expect.stringContaining('mcp') });
    }
    expect(await cofferdam(['mcp', '--help'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('--token-file'),
    });
  });

  test.each([
    [[], /Commands:\n(.*\n)* {2}mcp/],
    [['fly'], /unknown command "fly"; commands: .*mcp/],
    [['mcp', '--fly'], /--fly/],
    [['mcp', 'word'], /word/],
    [['mcp', '--mode', 'fast'], /--mode must be code or compute, not "fast"/],
    [['mcp', '--scope', 'wf_1'], /--scope must be kind:id/],
    [['mcp', '--scope', 'team:x'], /workflow or agent or user/],
    [['mcp', '--port', '80'], /--port is for --http/],
    [['mcp', '--http', '--port', 'x'], /--port must be a whole number/],
    [['mcp', '--http', '--token-file', '/no/such/file'], /cannot read the token/],
  ])('says what is wrong with %j, on standard error, and exits with 2', async (args, message) => {
    const { code, stdout, stderr } = await cofferdam(args);
    expect(stderr).toMatch(message);
    expect([code, stdout]).toEqual([2, '']);
  });

  test('refuses to listen beyond loopback without a token', async () => {
    const { code, stderr } = await cofferdam(['mcp', '--http', '--port', '0', '--host', '0.0.0.0']);
    expect(code).toBe(1);
    expect(stderr).toContain('set a token');
  });

  test('says what to install where the SDK is missing', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-cli-'));
    try {
      // The package as it is installed, with its dependencies and without its optional peers.
      const installed = path.join(folder, 'node_modules/cofferdam');
      const root = path.resolve(__dirname, '../..');
      cpSync(path.join(root, 'dist'), path.join(installed, 'dist'), { recursive: true });
      symlinkSync(path.join(root, 'package.json'), path.join(installed, 'package.json'));
      symlinkSync(
        path.join(root, 'cofferdam.linux-x64-gnu.node'),
        path.join(installed, 'cofferdam.linux-x64-gnu.node'),
      );
      for (const name of ['zod', 'yaml'])
        symlinkSync(path.join(root, 'node_modules', name), path.join(folder, 'node_modules', name));
      const main = path.join(installed, 'dist/cli/main.js');
      const { code, stdout, stderr } = await cofferdam(['mcp'], { main });
      expect(stderr).toContain('npm install @modelcontextprotocol/sdk');
      expect([code, stdout]).toEqual([2, '']);
      expect((await cofferdam(['--version'], { main })).stdout).toBe(`${version}\n`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describeWithEngine('cofferdam mcp', () => {
  const manager = testManager();

  async function connect(...args: string[]) {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [MAIN, 'mcp', '--image', IMAGES.alpine, ...args],
      env: ENV,
      stderr: 'pipe',
    });
    return { transport, client: await clientOver(transport) };
  }

  /** The program without a client between: its lines as they are. */
  function raw(env: Record<string, string> = {}) {
    const args = [MAIN, 'mcp', '--image', IMAGES.alpine];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ...ENV, ...env } });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    let id = 0;
    const send = async (message: object) => {
      id += 1;
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...message })}\n`);
      return JSON.parse((await lines.next()).value);
    };
    return { child, lines, send };
  }

  async function listening(...args: string[]): Promise<{ child: ChildProcess; url: string }> {
    const child = spawn(process.execPath, [MAIN, 'mcp', '--http', '--port', '0', '--image', IMAGES.alpine, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    for await (const line of createInterface(child.stderr)) {
      const [url] = /http:\S+/.exec(line) ?? [];
      if (url) return { child, url };
    }
    throw new Error('it did not listen');
  }

  test('serves a client over standard input and output, and goes with it', async () => {
    const { client, transport } = await connect();
    const tools = (await client.listTools()).tools.map(({ name }) => name);
    expect(tools).toContain('sandbox_exec');
    await call(client, 'sandbox_fs_write', { path: 'a.txt', content: 'one' });
    expect(await stdoutOf(client, 'cat a.txt')).toBe('one');
    const id = await sandboxId(client);
    const { pid } = transport;
    // As close() begins, which would kill it after a few seconds, however busy the engine is.
    (transport as unknown as { _process: ChildProcess })._process.stdin?.end();
    await until(() => !existsSync(`/proc/${pid}`));
    expect(await isOnEngine(manager, id)).toBe(false);
    await client.close();
  });

  test('cancels a command for its client', async () => {
    const { client } = await connect();
    const sandbox = await manager.get(await sandboxId(client));
    const cancel = new AbortController();
    const running = call(client, 'sandbox_exec', { command: 'sleep 654321' }, { signal: cancel.signal });
    await until(async () => (await countProcesses(sandbox, 'sleep 654321')) > 0);
    cancel.abort('enough');
    await expect(running).rejects.toThrow('enough');
    await until(async () => (await countProcesses(sandbox, 'sleep 654321')) === 0);
  });

  test('gives the tools and the network that it was told', async () => {
    const { client } = await connect(
      '--include',
      'sandbox_exec,sandbox_open',
      '--include',
      'sandbox_close',
      '--network',
    );
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual(['sandbox_close', 'sandbox_exec', 'sandbox_open']);
    const { network } = await (await manager.get(await sandboxId(client))).info();
    expect(network).toBe(true);
  });

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'closes everything and exits at %s, also in the middle of a call',
    async (signal) => {
      const { client, transport } = await connect();
      const id = await sandboxId(client);
      const sandbox = await manager.get(id);
      const running = call(client, 'sandbox_exec', { command: 'sleep 1000' }).catch(() => {});
      await until(async () => (await countProcesses(sandbox, 'sleep 1000')) > 0);
      const closed = new Promise<void>((resolve) => {
        client.onclose = resolve;
      });
      process.kill(Number(transport.pid), signal);
      await closed;
      await running;
      expect(await isOnEngine(manager, id)).toBe(false);
    },
  );

  test('closes everything and exits when its input ends in the middle of a call', async () => {
    const { child, send } = raw();
    await send({ method: 'initialize', params: INITIALIZE });
    const { result } = await send({ method: 'tools/call', params: { name: 'sandbox_open' } });
    const id = result.structuredContent.sandbox_id;
    const sandbox = await manager.get(id);
    const params = { name: 'sandbox_exec', arguments: { command: 'sleep 1000' } };
    send({ method: 'tools/call', params }).catch(() => {});
    await until(async () => (await countProcesses(sandbox, 'sleep 1000')) > 0);
    child.stdin.end();
    expect(await once(child, 'close')).toEqual([0, null]);
    expect(await isOnEngine(manager, id)).toBe(false);
  });

  test('leaves its sandbox to the sandbox’s own lease when it is killed', async () => {
    const { child, send } = raw({ COFFERDAM_ORPHAN_TIMEOUT: '1s' });
    await send({ method: 'initialize', params: INITIALIZE });
    const { result } = await send({ method: 'tools/call', params: { name: 'sandbox_open' } });
    const id = result.structuredContent.sandbox_id;
    expect(await isOnEngine(manager, id)).toBe(true);
    child.kill('SIGKILL');
    await until(async () => !(await isOnEngine(manager, id)));
  });

  test('leaves a sandbox that is shared by scope to be found again', async () => {
    const workflow = unique();
    const { client } = await connect('--scope', `workflow:${workflow}`);
    await call(client, 'sandbox_fs_write', { path: 'plan.txt', content: 'to be continued' });
    await client.close();
    const again = await connect('--scope', `workflow:${workflow}`);
    expect(await stdoutOf(again.client, 'cat plan.txt')).toBe('to be continued');
    await again.client.close();
    expect(await manager.endScope({ workflow })).toEqual({ closed: 1 });
  });

  test('goes on after lines that are no messages, and writes nothing else to standard output', async () => {
    const { child, lines } = raw();
    child.stdin.write('what?\n{"jsonrpc":"2.0"}\n[]\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    expect(JSON.parse((await lines.next()).value)).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
    child.stdin.end();
    expect(await once(child, 'close')).toEqual([0, null]);
    expect((await lines.next()).done).toBe(true);
  });

  test('serves clients over HTTP with a token from a file, and closes all at SIGTERM', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-token-'));
    const token = 'a-token-of-enough-characters';
    writeFileSync(path.join(folder, 'token'), `${token}\n`);
    const { child, url } = await listening('--token-file', path.join(folder, 'token'));
    expect((await fetch(url, { method: 'POST' })).status).toBe(401);
    const requestInit = { headers: { Authorization: `Bearer ${token}` } };
    const client = await clientOver(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
    const id = await sandboxId(client);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(await isOnEngine(manager, id)).toBe(false);
    rmSync(folder, { recursive: true });
  });

  test('is what the example of a client shows', async () => {
    const main = path.resolve(__dirname, '../../examples/mcp-client.mjs');
    const { code, stdout, stderr } = await cofferdam([IMAGES.alpine], { main });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('cancelled, and nothing of it is left');
    expect(stdout).toContain('resource sandbox:///workspace/ticks.sh');
  });
});
