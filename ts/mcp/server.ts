/**
 * The MCP server of one client: its tools, its files as resources, and its session.
 *
 * Invariant: a server serves one client. When the client disconnects, its calls end and its session is closed, unless a
 * scope shares the session.
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

/** The tools of a client, and how the server presents them. */
export interface McpServerOptions extends ToolContext {
  /**
   * Instructions for the client's model.
   *
   * @default a general description
   */
  instructions?: string;
  /**
   * The maximum size of a file as a resource.
   *
   * @default 1_048_576
   */
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
    // One-shot runs leave no files to list.
    if (context.mode !== 'compute') this.#resources = new Resources(this.server, this.#toolset, maxResourceBytes);
    this.#calls = new ToolCalls(this.server, this.#toolset, networkOf(context), () => {
      this.#resources?.refresh().catch((error: Error) => this.server.onerror?.(error));
    });
  }

  override async connect(transport: Transport): Promise<void> {
    const before = transport.onclose;
    // Not `server.onclose`, which belongs to the embedding program.
    transport.onclose = () => {
      before?.();
      this.#end().catch((error: Error) => this.server.onerror?.(error));
    };
    await super.connect(transport);
  }

  /** Resolves when the session is closed or, if it is shared, when nothing of this client runs in it. */
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
 * An MCP server for one client: connect it to its own transport. The session is closed by `close()` or when the client
 * disconnects, unless `scope` shares it.
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

/** Whether sandboxes have network, if the options say so. The manager's defaults are not known here. */
function networkOf({ network }: ToolContext): boolean | undefined {
  return typeof network === 'object' ? network.enabled : network;
}

function instructionsFor(context: ToolContext): string {
  const network = networkOf(context);
  const reach = network === undefined ? [] : [network ? 'It has network access.' : 'It has no network.'];
  if (context.mode === 'compute') {
    return ['Runs programs in Linux sandboxes, each in a new one that is gone afterwards.', ...reach].join(' ');
  }
  const { image, workdir, scope } = context;
  const until = scope ? ', and others may work in it, too' : ' until this connection ends';
  return [
    `A Linux sandbox${image ? ` (${image})` : ''} for running commands and working on files.`,
    `It persists between calls: files, installed packages and background processes stay${until}.`,
    `Commands and relative paths start in ${workdir ?? 'its working directory'}.`,
    ...reach,
    'Nothing in it can reach the files of the host.',
  ].join(' ');
}
