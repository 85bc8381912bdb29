/**
 * MCP over streamable HTTP: many clients, each with a server and a session of its own.
 *
 * Invariant: every session ends: with `DELETE`, with the server, or when its client has had no request open for the idle
 * time, however it went away.
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
/** As long as a sandbox itself waits for its next use. */
const CLIENT_IDLE_MS = 30 * 60_000;

/** JSON-RPC's codes for what is wrong outside of a call. */
const SERVER_ERROR = -32000;
const SESSION_NOT_FOUND = -32001;

/** Options of {@link serveHttp}. */
export interface McpHttpOptions extends McpServerOptions, Partial<GuardOptions> {
  /** 8808 unless told; 0 for any that is free. */
  port?: number;
  /** The longest request; 4 MiB unless told. */
  maxBodyBytes?: number;
  /** How many clients at once; 64 unless told. */
  maxClients?: number;
  /** A client that has had no request open for so long is taken for gone; 30 minutes unless told, 0 for never. */
  clientIdleMs?: number;
  /** Told of what went wrong beside the calls. */
  onError?: (error: Error) => void;
}

/** A server that listens. */
export interface McpHttpServer extends AsyncDisposable {
  /** `http://127.0.0.1:8808/mcp` */
  readonly url: string;
  /** How many clients there are. */
  readonly clients: number;
  /** Ends it with all its clients' sessions. */
  close(): Promise<void>;
}

/**
 * Serves clients over HTTP, on loopback unless told. Each has its own session, unless `scope` shares one.
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
    // What is wrong with the options is said now, and not to the first client.
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
      if (path !== PATH) return refuse(response, 404, `there is nothing at ${path}; the server is at ${PATH}`);
      await this.#serve(request, response);
    } catch (error) {
      this.#onError?.(error as Error);
      refuse(response, 500, 'the server failed; its log says why');
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
      return refuse(response, 404, 'this session is over; initialize a new one', SESSION_NOT_FOUND);
    }
    // Here, so that the answer comes when its sandbox is gone.
    if (session && method === 'DELETE') {
      await session.close();
      response.writeHead(204).end();
      return;
    }
    if (method !== 'POST') {
      if (session) return session.handle(request, response);
      return refuse(response, 400, 'send the Mcp-Session-Id that initialize gave');
    }
    const body = await readJson(request, this.#maxBodyBytes);
    if ('problem' in body) return refuse(response, body.status, body.problem, body.code);
    if (session) return session.handle(request, response, body.json);
    if (!isInitializeRequest(body.json)) {
      return refuse(response, 400, 'send initialize first, and then the Mcp-Session-Id that it gave');
    }
    await this.#initialize(request, response, body.json);
  }

  async #initialize(request: IncomingMessage, response: ServerResponse, json: unknown): Promise<void> {
    if (!this.#http.listening) return refuse(response, 503, 'the server is closing');
    if (this.#sessions.size >= this.#maxClients) {
      response.setHeader('Retry-After', '60');
      return refuse(response, 503, `there are ${this.#maxClients} clients already; try again when one has left`);
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
  // What of the body was not read must not be taken for the next request.
  response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}
