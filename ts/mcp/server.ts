/**
 * One client's MCP server: its tools, its files as resources, and the session they are in.
 *
 * Invariant: a server is one client's. When the client leaves, whatever way, its calls end and its session goes with it,
 * unless the session is shared by scope.
 */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import * as check from '../internal/check';
import type { SandboxManager } from '../manager';
import { createToolset } from '../tools';
import type { ToolContext, Toolset } from '../tools/toolset';
import { version } from '../version';
import { Resources } from './resources';
import { ToolCalls } from './tool-calls';

const MAX_RESOURCE_BYTES = 1024 * 1024;

/** Whose tools a client gets, and how the server presents them. */
export interface McpServerOptions extends ToolContext {
  /** What the client's model is told about this server; said in general words unless told. */
  instructions?: string;
  /** The longest file that is given as a resource; 1 MiB unless told. */
  maxResourceBytes?: number;
}

class SandboxMcpServer extends McpServer {
  readonly #toolset: Toolset;
  readonly #calls: ToolCalls;
  readonly #resources: Resources | undefined;
  #ended: Promise<void> | undefined;

  constructor(manager: SandboxManager, options: McpServerOptions) {
    const { instructions, maxResourceBytes = MAX_RESOURCE_BYTES, ...context } = options;
    super(
      { name: 'cofferdam', title: 'cofferdam sandbox', version },
      { instructions: check.text('instructions', instructions ?? instructionsFor(context)) },
    );
    check.count('maxResourceBytes', maxResourceBytes);
    this.#toolset = createToolset(manager, context);
    // One-shot runs leave nothing that could be listed.
    if (context.mode !== 'compute') this.#resources = new Resources(this.server, this.#toolset, maxResourceBytes);
    this.#calls = new ToolCalls(this.server, this.#toolset, networkOf(context), () => {
      this.#resources?.refresh().catch((error: Error) => this.server.onerror?.(error));
    });
  }

  override async connect(transport: Transport): Promise<void> {
    const before = transport.onclose;
    // Here, and not at `server.onclose`, which belongs to whoever embeds the server.
    transport.onclose = () => {
      before?.();
      this.#end().catch((error: Error) => this.server.onerror?.(error));
    };
    await super.connect(transport);
  }

  /** Resolves when the session is closed, too, or, where it is shared, nothing of this client's runs in it any more. */
  override async close(): Promise<void> {
    await super.close();
    await this.#end();
  }

  #end(): Promise<void> {
    this.#calls.abort();
    this.#resources?.end();
    this.#ended ??= this.#toolset.close().then(() => this.#calls.ended());
    return this.#ended;
  }
}

/**
 * An MCP server for one client: connect it to a transport of its own. `close()`, or the client's leaving, closes the
 * session, unless `scope` shares it.
 *
 * @example
 * ```ts
 * import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
 *
 * const server = createMcpServer(manager, { image: 'python' });
 * await server.connect(new StdioServerTransport());
 * ```
 */
export function createMcpServer(manager: SandboxManager, options: McpServerOptions = {}): McpServer {
  return new SandboxMcpServer(manager, check.object('options', options));
}

/** Whether sandboxes have network, if the options say so: what the manager's own defaults are is not known here. */
function networkOf({ network }: ToolContext): boolean | undefined {
  return typeof network === 'object' ? network.enabled : network;
}

function instructionsFor(context: ToolContext): string {
  const network = networkOf(context);
  const reach = network === undefined ? [] : [network ? 'It has network access.' : 'It has no network.'];
  if (context.mode === 'compute') {
    return ['Runs programs in Linux sandboxes, each in a fresh one that is gone afterwards.', ...reach].join(' ');
  }
  const { image, workdir, scope } = context;
  const until = scope ? ', and others may be working in it, too' : ' until this connection ends';
  return [
    `A Linux sandbox${image ? ` (${image})` : ''} for running commands and working on files.`,
    `It stays from call to call: files, installed packages and background processes are kept${until}.`,
    `Commands and relative paths start in ${workdir ?? 'its working directory'}.`,
    ...reach,
    'Nothing in it can reach the files of the host.',
  ].join(' ');
}
