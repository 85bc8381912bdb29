/** Something in the place of an engine, on a socket: for what no engine can be made to do. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

export class StandIn implements AsyncDisposable {
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-stand-in-'));
  readonly #sockets = new Set<Socket>();
  readonly socket = path.join(this.#folder, 'engine.sock');
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => {});
    });
  }

  /** One that lets everybody in, and never says a word. */
  static hanging(): Promise<StandIn> {
    return new StandIn(createServer(() => {})).#listening();
  }

  static http(answer: RequestListener): Promise<StandIn> {
    return new StandIn(createHttpServer(answer)).#listening();
  }

  get host(): string {
    return `unix://${this.socket}`;
  }

  async #listening(): Promise<StandIn> {
    await new Promise<void>((resolve) => this.#server.listen(this.socket, resolve));
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** An engine of long ago. */
export const OLD: RequestListener = (request, response) => {
  if (request.url?.endsWith('/_ping')) {
    response.end('OK');
    return;
  }
  const body = request.url?.endsWith('/version')
    ? { Version: '18.09.1', ApiVersion: '1.38', MinAPIVersion: '1.12', Os: 'linux', Arch: 'amd64' }
    : { message: 'page not found' };
  response.writeHead('Version' in body ? 200 : 404, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
};
