/**
 * One client over HTTP: its server, its transport, and whether it is still there.
 *
 * A client is there while one of its requests is open: a call it waits for, or its stream of notifications. With none, it
 * has the idle time to come back.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { CancelledNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import type { SandboxManager } from '../manager';
import { createMcpServer, type McpServerOptions } from './server';

/** Node's own limit; about 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class HttpSession {
  /** Random: who does not know it cannot speak for the client. */
  readonly id = randomUUID();
  /** When the session is over, its sandbox closed. */
  readonly ended: Promise<void>;
  readonly #server: McpServer;
  readonly #transport: StreamableHTTPServerTransport;
  readonly #idleMs: number | undefined;
  #open = 0;
  #idle: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  readonly #onError: ((error: Error) => void) | undefined;
  #onEnded: () => void = () => {};

  constructor(
    manager: SandboxManager,
    context: McpServerOptions,
    idleMs: number | undefined,
    onError: ((error: Error) => void) | undefined,
  ) {
    this.#idleMs = idleMs === undefined ? undefined : Math.min(idleMs, LONGEST_TIMER_MS);
    this.#onError = onError;
    this.#server = createMcpServer(manager, context);
    this.#server.server.onerror = onError;
    this.#transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => this.id });
    this.ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
  }

  /** Whether the transport took the client's first request for what it should be. */
  get isInitialized(): boolean {
    return this.#transport.sessionId !== undefined;
  }

  async connect(): Promise<void> {
    // Nothing answers a call that was cancelled: its stream would stay open for as long as the session, as older SDKs have it.
    this.#transport.onmessage = (message) => {
      const cancelled = CancelledNotificationSchema.safeParse(message).data?.params.requestId;
      if (cancelled !== undefined) this.#transport.closeSSEStream?.(cancelled);
    };
    // Its optional callbacks are spelled without `undefined`.
    await this.#server.connect(this.#transport as Transport);
  }

  async handle(request: IncomingMessage, response: ServerResponse, json?: unknown): Promise<void> {
    this.#open += 1;
    clearTimeout(this.#idle);
    response.once('close', () => {
      this.#open -= 1;
      if (this.#open === 0 && this.#idleMs !== undefined && this.#closing === undefined) {
        this.#idle = setTimeout(() => void this.close(), this.#idleMs).unref();
      }
    });
    await this.#transport.handleRequest(request, response, json);
  }

  /** Ends its calls and its session. A sandbox that cannot be closed is left to its own lease. Twice is fine. */
  close(): Promise<void> {
    clearTimeout(this.#idle);
    this.#closing ??= this.#server
      .close()
      .catch((error: Error) => this.#onError?.(error))
      .finally(() => this.#onEnded());
    return this.#closing;
  }
}
