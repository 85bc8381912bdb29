/**
 * `cofferdam mcp`: serves sandboxes to MCP clients, over standard input and output or over HTTP.
 *
 * When it ends, by the client or by a signal, its clients' sandboxes are closed. One that is shared by scope stays for its
 * orphan timeout, because others may use it.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { McpServerOptions } from '../../mcp';
import { command, EXIT, type Flags, say, UsageError } from '../command';
import { managerFrom } from '../engine';
import { oneOf, time, wholeNumber } from '../parse';
import { SANDBOX, SESSION, scopeFrom } from '../sandbox-options';
import { stopSignal } from '../stop';

const SDK = '@modelcontextprotocol/sdk';
const TOKEN = 'COFFERDAM_MCP_TOKEN';

const MODES = ['code', 'compute'] as const;

const http = 'HTTP';

const FLAGS = {
  image: SANDBOX.image,
  network: SANDBOX.network,
  scope: {
    ...SESSION.scope,
    about: 'Share it with all programs that name the same: workflow:wf_1 (default: one per client)',
  },
  mode: {
    type: 'string',
    value: MODES.join('|'),
    about: 'code: a sandbox that stays open; compute: one-shot runs only (default: code)',
    complete: MODES,
  },
  include: { type: 'string', multiple: true, value: 'tool,…', about: 'Only these tools' },
  http: { type: 'boolean', about: 'Listen on http://127.0.0.1:8808/mcp', group: http },
  port: { type: 'string', about: 'Another port; 0 for any free one', group: http },
  host: { type: 'string', value: 'address', about: 'Another address; one beyond loopback needs a token', group: http },
  'token-file': {
    type: 'string',
    value: 'file',
    about: `What clients must send as "Authorization: Bearer …"; or set ${TOKEN}`,
    group: http,
    complete: 'file',
  },
  'allowed-host': {
    type: 'string',
    multiple: true,
    value: 'name',
    about: 'A host name that clients may use for the server',
    group: http,
  },
  'allowed-origin': {
    type: 'string',
    multiple: true,
    value: 'url',
    about: 'Allow web pages of this origin',
    group: http,
  },
  'client-idle': {
    type: 'string',
    value: 'time',
    about: 'Drop a client after this long without a request (default: 30m)',
    group: http,
  },
} as const satisfies Flags;

const FOR_HTTP = ['port', 'host', 'token-file', 'allowed-host', 'allowed-origin', 'client-idle'] as const;

export const mcp = command({
  name: 'mcp',
  summary: 'Serve sandboxes to MCP clients',
  about: `Gives an MCP client a Linux sandbox, over standard input and output, or over HTTP with --http. The engine is found as the
docker command finds it (DOCKER_HOST, docker contexts).`,
  flags: FLAGS,
  examples: [
    { line: 'cofferdam mcp --image python', about: 'For an MCP client to start' },
    { line: 'cofferdam mcp --http --port 8808', about: 'One server for several clients' },
  ],
  async run({ flags: { http, ...given } }) {
    const stray = FOR_HTTP.find((name) => given[name] !== undefined);
    if (!http && stray) throw new UsageError(`--${stray} is for --http`);
    const context: McpServerOptions = {
      image: given.image,
      network: given.network ?? false,
      scope: given.scope === undefined ? undefined : scopeFrom(given.scope),
      mode: given.mode === undefined ? undefined : oneOf('--mode', MODES, given.mode),
      include: given.include?.flatMap((names) => names.split(',').map((name) => name.trim())),
    };
    const server = await load();
    // Holds for every tool: the person who started the program decides.
    const manager = managerFrom({}, { policy: { network: context.network ? 'allow' : 'deny' } });
    const signal = stopSignal();
    const onError = (error: Error) => say(error.message);
    if (http) {
      const listening = await server.serveHttp(manager, {
        ...context,
        port: given.port === undefined ? undefined : wholeNumber('--port', given.port),
        host: given.host,
        token: await tokenFrom(given['token-file']),
        allowedHosts: given['allowed-host'],
        allowedOrigins: given['allowed-origin'],
        clientIdleMs: time('--client-idle', given['client-idle']),
        onError,
      });
      say(`listening on ${listening.url}`);
      if (!signal.aborted) await once(signal, 'abort');
      await listening.close();
    } else {
      if (process.stdin.isTTY) say('waiting for an MCP client on standard input; for help, try --help');
      await server.serveStdio(manager, { ...context, signal, onError });
    }
    if (context.scope === undefined) await manager.close();
    return EXIT.ok;
  },
});

/** Loads the server, whose SDK is not a dependency of this package. */
async function load(): Promise<typeof import('../../mcp')> {
  try {
    return await import('../../mcp/index.js');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'MODULE_NOT_FOUND' || !message.includes(SDK)) throw error;
    throw new UsageError(
      `the MCP server needs ${SDK}, which is not installed. Run: npm install ${SDK}\n` +
        `With npx: npx -y -p cofferdam -p ${SDK} cofferdam mcp`,
    );
  }
}

/** Not an option: other users of the machine can read command lines. */
async function tokenFrom(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return process.env[TOKEN] || undefined;
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new UsageError(`cannot read the token from ${JSON.stringify(file)}: ${(error as Error).message}`);
  }
}
