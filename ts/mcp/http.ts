/**
 * MCP over streamable HTTP. Each client has its own server and session.
 *
 * Invariant: every session ends: with `DELETE`, with the server, or when its client has had no open request for the idle
 * time.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { SandboxError } from '../errors';
import * as check from '../internal/check';
import type { SandboxManager } from '../manager';
import { readJson } from './http-body';
import { Guard, type GuardOptions } from './http-guard';
import { HttpSession } from './http-session';
import { createMcpServer, type McpServerOptions } from './server';

const PATH = '/mcp';
const METHODS = ['POST', 'GET', 'DELETE', 'OPTIONS'];
const PORT = 8808;
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const MAX_CLIENTS = 64;
/** The same as the idle timeout of a sandbox. */
const CLIENT_IDLE_MS = 30 * 60_000;

/** JSON-RPC codes for errors outside a call. */
const SERVER_ERROR = -32000;
const SESSION_NOT_FOUND = -32001;

/** Options of {@link serveHttp}. */
export interface McpHttpOptions extends McpServerOptions, Partial<GuardOptions> {
  /**
   * The port to listen on; 0 picks a free one.
   *
   * @default 8808
   */
  port?: number;
  /**
   * The maximum size of a request.
   *
   * @default 4_194_304
   */
  maxBodyBytes?: number;
  /**
   * The maximum number of clients at the same time.
   *
   * @default 64
   */
  maxClients?: number;
  /**
   * A client without an open request for this time is considered gone. 0 means never.
   *
   * @default 1_800_000
   */
  clientIdleMs?: number;
  /** Called with errors outside of calls. */
  onError?: (error: Error) => void;
}

/** A server that listens. */
export interface McpHttpServer extends AsyncDisposable {
  /** `http://127.0.0.1:8808/mcp` */
  readonly url: string;
  /** The number of clients. */
  readonly clients: number;
  /** Closes the server and the sessions of all clients. */
  close(): Promise<void>;
}

/**
 * Serves clients over HTTP, on loopback by default. Each client has its own session, unless `scope` shares one.
 *
 * @example
 * ```ts
 * await using server = await serveHttp(manager, { image: 'python', port: 0 });
 * console.log(server.url);
 * ```
 */
export async function serveHttp(manager: SandboxManager, options: McpHttpOptions = {}): Promise<McpHttpServer> {
  const server = new HttpServer(manager, check.object('options', options));
  await server.listen();
  return server;
}

class HttpServer implements McpHttpServer {
  url = '';
  readonly #manager: SandboxManager;
  readonly #context: McpServerOptions;
  readonly #guard: Guard;
  readonly #host: string;
  readonly #port: number;
  readonly #maxBodyBytes: number;
  readonly #maxClients: number;
  readonly #clientIdleMs: number | undefined;
  readonly #onError: ((error: Error) => void) | undefined;
  readonly #sessions = new Map<string, HttpSession>();
  readonly #http = createServer((request, response) => void this.#answer(request, response));

  constructor(manager: SandboxManager, options: McpHttpOptions) {
    const { host = '127.0.0.1', port = PORT, token, allowedHosts, allowedOrigins, ...others } = options;
    const { maxBodyBytes, maxClients, clientIdleMs, onError, ...context } = others;
    this.#manager = manager;
    this.#context = context;
    this.#guard = new Guard({ host: check.text('host', host), token, allowedHosts, allowedOrigins });
    this.#host = host;
    this.#port = port === 0 ? 0 : check.port('port', port);
    this.#maxBodyBytes = check.count('maxBodyBytes', maxBodyBytes ?? MAX_BODY_BYTES);
    this.#maxClients = check.count('maxClients', maxClients ?? MAX_CLIENTS);
    this.#clientIdleMs = check.timeout('clientIdleMs', clientIdleMs ?? CLIENT_IDLE_MS);
    this.#onError = onError;
    // Rejects wrong options now, not when the first client connects.
    createMcpServer(manager, context);
  }

  get clients(): number {
    return this.#sessions.size;
  }

  async listen(): Promise<void> {
    this.#http.listen({ host: this.#host.replace(/^\[|\]$/g, ''), port: this.#port });
    try {
      await once(this.#http, 'listening');
    } catch (error) {
      const { message } = error as Error;
      throw new SandboxError('INVALID_ARGUMENT', `cannot listen on ${this.#host}, port ${this.#port}: ${message}`);
    }
    this.#http.on('error', (error) => this.#onError?.(error));
    const { address, family, port } = this.#http.address() as AddressInfo;
    this.url = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}${PATH}`;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#http.close(() => resolve()));
    await Promise.all([...this.#sessions.values()].map((session) => session.close()));
    this.#http.closeAllConnections();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      for (const [name, value] of Object.entries(this.#guard.grant(request))) response.setHeader(name, value);
      const refusal = this.#guard.refuse(request);
      if (refusal) {
        if (refusal.status === 401) response.setHeader('WWW-Authenticate', 'Bearer');
        return refuse(response, refusal.status, refusal.message);
      }
      const [path] = (request.url ?? '').split('?');
      if (path !== PATH) return refuse(response, 404, `${path} not found; the server is at ${PATH}`);
      await this.#serve(request, response);
    } catch (error) {
      this.#onError?.(error as Error);
      refuse(response, 500, 'internal error; see the log of the server');
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '' } = request;
    if (!METHODS.includes(method)) {
      response.setHeader('Allow', METHODS.join(', '));
      return refuse(response, 405, `${method} is not a method of MCP`);
    }
    if (method === 'OPTIONS') return void response.writeHead(204).end();
    const id = request.headers['mcp-session-id'];
    const session = typeof id === 'string' ? this.#sessions.get(id) : undefined;
    if (id !== undefined && !session) {
      return refuse(response, 404, 'this session has ended; initialize a new one', SESSION_NOT_FOUND);
    }
    // Answers when the sandbox is gone.
    if (session && method === 'DELETE') {
      await session.close();
      response.writeHead(204).end();
      return;
    }
    if (method !== 'POST') {
      if (session) return session.handle(request, response);
      return refuse(response, 400, 'send the Mcp-Session-Id that initialize returned');
    }
    const body = await readJson(request, this.#maxBodyBytes);
    if ('problem' in body) return refuse(response, body.status, body.problem, body.code);
    if (session) return session.handle(request, response, body.json);
    if (!isInitializeRequest(body.json)) {
      return refuse(response, 400, 'send initialize first, then the Mcp-Session-Id that it returned');
    }
    await this.#initialize(request, response, body.json);
  }

  async #initialize(request: IncomingMessage, response: ServerResponse, json: unknown): Promise<void> {
    if (!this.#http.listening) return refuse(response, 503, 'the server is closing');
    if (this.#sessions.size >= this.#maxClients) {
      response.setHeader('Retry-After', '60');
      return refuse(response, 503, `the limit of ${this.#maxClients} clients is reached; try again later`);
    }
    const session = new HttpSession(this.#manager, this.#context, this.#clientIdleMs, this.#onError);
    this.#sessions.set(session.id, session);
    session.ended.finally(() => this.#sessions.delete(session.id));
    await session.connect();
    await session.handle(request, response, json);
    if (!session.isInitialized) await session.close();
  }
}

function refuse(response: ServerResponse, status: number, message: string, code = SERVER_ERROR): void {
  if (response.headersSent) return void response.end();
  // The unread rest of the body must not be taken for the next request.
  response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}
