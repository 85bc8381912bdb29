/**
 * One client over HTTP: its server, its transport, and whether it is still connected.
 *
 * A client is connected while one of its requests is open: a call, or its stream of notifications. Without one, it has the
 * idle time to return.
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
  /** Random, so that nobody else can act as the client. */
  readonly id = randomUUID();
  /** Resolves when the session is over and its sandbox is closed. */
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

  /** Whether the transport accepted the client's first request. */
  get isInitialized(): boolean {
    return this.#transport.sessionId !== undefined;
  }

  async connect(): Promise<void> {
    // A cancelled call gets no answer. With older SDKs its stream would stay open as long as the session.
    this.#transport.onmessage = (message) => {
      const cancelled = CancelledNotificationSchema.safeParse(message).data?.params.requestId;
      if (cancelled !== undefined) this.#transport.closeSSEStream?.(cancelled);
    };
    // The types of its optional callbacks lack `undefined`.
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

  /** Ends its calls and its session. A sandbox that cannot be closed ends by its lease. Idempotent. */
  close(): Promise<void> {
    clearTimeout(this.#idle);
    this.#closing ??= this.#server
      .close()
      .catch((error: Error) => this.#onError?.(error))
      .finally(() => this.#onEnded());
    return this.#closing;
  }
}
