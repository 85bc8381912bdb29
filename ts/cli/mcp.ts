/**
 * `cofferdam mcp`: sandboxes for MCP clients, over standard input and output or over HTTP.
 *
 * When it ends, by the client or by a signal, its clients' sandboxes are closed; one that is shared by scope stays for its
 * orphan timeout, for others may be at work in it.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { duration } from '../internal/environment';
import { SandboxManager } from '../manager';
import type { McpServerOptions } from '../mcp';
import type { OpenOptions } from '../options';
import { type Command, EXIT, oneOf, options, say, UsageError, wholeNumber } from './command';
import { stopSignal } from './stop';

const SDK = '@modelcontextprotocol/sdk';
const TOKEN = 'COFFERDAM_MCP_TOKEN';

const HELP = `Usage: cofferdam mcp [options]

Gives an MCP client a Linux sandbox: over standard input and output, or over HTTP with --http.

What the sandbox is:
  --image <image>         linux, python, node or any image
  --network               Let it reach the network
  --scope <kind:id>       Share it with all who name the same workflow, agent or user: workflow:wf_1.
                          Without, each client has one of its own, which is closed when the client leaves
  --mode <code|compute>   code: a sandbox that stays (unless told); compute: one-shot runs alone
  --include <tool,…>      Only these tools; may be repeated

HTTP:
  --http                  Listen on http://127.0.0.1:8808/mcp
  --port <port>           Another port; 0 for any that is free
  --host <address>        Another address; one beyond loopback needs a token
  --token-file <file>     What clients must send as "Authorization: Bearer …"; or set ${TOKEN}
  --allowed-host <name>   A name by which clients call the server; may be repeated
  --allowed-origin <url>  Let pages of this origin call the server; may be repeated
  --client-idle <time>   A client is gone after so long without a request: 30m unless told

The engine is found as the docker command finds it (DOCKER_HOST, docker contexts).
`;

const OPTIONS = {
  image: { type: 'string' },
  network: { type: 'boolean' },
  scope: { type: 'string' },
  mode: { type: 'string' },
  include: { type: 'string', multiple: true },
  http: { type: 'boolean' },
  port: { type: 'string' },
  host: { type: 'string' },
  'token-file': { type: 'string' },
  'allowed-host': { type: 'string', multiple: true },
  'allowed-origin': { type: 'string', multiple: true },
  'client-idle': { type: 'string' },
} as const;

const FOR_HTTP = ['port', 'host', 'token-file', 'allowed-host', 'allowed-origin', 'client-idle'] as const;

export const mcp: Command = {
  name: 'mcp',
  summary: 'Serve sandboxes to MCP clients',
  help: HELP,
  async run(args) {
    const { http, ...given } = options({ args, options: OPTIONS });
    const stray = FOR_HTTP.find((name) => given[name] !== undefined);
    if (!http && stray) throw new UsageError(`--${stray} is for --http`);
    const context: McpServerOptions = {
      image: given.image,
      network: given.network ?? false,
      scope: given.scope === undefined ? undefined : scopeOf(given.scope),
      mode: given.mode === undefined ? undefined : oneOf('--mode', ['code', 'compute'], given.mode),
      include: given.include?.flatMap((names) => names.split(',').map((name) => name.trim())),
    };
    const server = await load();
    // Whatever a tool may come to ask for: the person who started the program said no.
    const manager = new SandboxManager({ policy: { network: context.network ? 'allow' : 'deny' } });
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
        clientIdleMs: duration('--client-idle', given['client-idle']),
        onError,
      });
      say(`listening on ${listening.url}`);
      if (!signal.aborted) await once(signal, 'abort');
      await listening.close();
    } else {
      if (process.stdin.isTTY) say('this is for MCP clients, which speak to it here; try --help');
      await server.serveStdio(manager, { ...context, signal, onError });
    }
    if (context.scope === undefined) await manager.close();
    return EXIT.ok;
  },
};

/** The server, whose SDK is not installed with this package. */
async function load(): Promise<typeof import('../mcp')> {
  try {
    return await import('../mcp/index.js');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'MODULE_NOT_FOUND' || !message.includes(SDK)) throw error;
    throw new UsageError(
      `the MCP server needs ${SDK}, which is not installed. Run: npm install ${SDK}\n` +
        `With npx: npx -y -p cofferdam -p ${SDK} cofferdam mcp`,
    );
  }
}

function scopeOf(text: string): NonNullable<OpenOptions['scope']> {
  const [, kind = '', id = ''] = /^([^:]*):(.+)$/.exec(text) ?? [];
  if (id === '') throw new UsageError(`--scope must be kind:id, as in workflow:wf_1, not ${JSON.stringify(text)}`);
  return { [oneOf('the kind of --scope', ['workflow', 'agent', 'user'], kind)]: id };
}

/** Not an option of its own: other users of the machine can read command lines. */
async function tokenFrom(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return process.env[TOKEN] || undefined;
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new UsageError(`cannot read the token from ${JSON.stringify(file)}: ${(error as Error).message}`);
  }
}
