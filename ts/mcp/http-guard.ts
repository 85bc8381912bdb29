/**
 * Access control of the HTTP server, checked before the body of a request is read.
 *
 * Browser pages have no access, whatever host name they use (DNS rebinding). Other machines need the token.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { SandboxError } from '../errors';
import * as check from '../internal/check';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
/** Headers that clients send beyond those that every page may. */
const ASKED_HEADERS = 'Authorization, Content-Type, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id';
const EVERY_ADDRESS = ['0.0.0.0', '::', '[::]'];

export interface GuardOptions {
  /**
   * The address to listen on.
   *
   * @default '127.0.0.1'
   */
  host: string;
  /** The token that clients must send as `Authorization: Bearer …`. Required where other machines can connect. */
  token?: string;
  /** Host names that clients may use, in addition to loopback and `host`. */
  allowedHosts?: readonly string[];
  /** Origins of browser pages that may call the server: `https://app.example.com`. */
  allowedOrigins?: readonly string[];
}

/** Why a request is refused. */
export interface Refusal {
  status: 401 | 403;
  message: string;
}

export class Guard {
  readonly #token: Buffer | undefined;
  /** `undefined` allows every name: then the token protects the server. */
  readonly #hosts: ReadonlySet<string> | undefined;
  readonly #origins: ReadonlySet<string>;

  constructor({ host, token, allowedHosts, allowedOrigins }: GuardOptions) {
    if (token !== undefined && check.text('token', token).length < 16) {
      throw new SandboxError(
        'INVALID_ARGUMENT',
        'token must have at least 16 characters; make one with: openssl rand -hex 32',
      );
    }
    if (token === undefined && !isLoopback(host)) {
      const message = `listening on ${host} lets other machines run commands here: set a token, or listen on 127.0.0.1`;
      throw new SandboxError('INVALID_ARGUMENT', message, { host });
    }
    const named = check.list('allowedHosts', allowedHosts).map((name) => name.toLowerCase());
    this.#token = token === undefined ? undefined : digest(token);
    this.#hosts =
      EVERY_ADDRESS.includes(host) && named.length === 0
        ? undefined
        : new Set([
            ...LOOPBACK,
            host.includes(':') ? `[${host.replace(/^\[|\]$/g, '')}]` : host.toLowerCase(),
            ...named,
          ]);
    this.#origins = new Set(check.list('allowedOrigins', allowedOrigins).map((origin) => origin.toLowerCase()));
  }

  /** `undefined` for a request that is allowed. */
  refuse({ method, headers }: IncomingMessage): Refusal | undefined {
    const host = hostnameOf(headers.host);
    if (host === undefined || (this.#hosts && !this.#hosts.has(host))) {
      return {
        status: 403,
        message: `the server is not called ${JSON.stringify(headers.host ?? '')}; allow that host`,
      };
    }
    if (headers.origin !== undefined && !this.#isAllowedOrigin(headers.origin)) {
      return { status: 403, message: `pages of ${JSON.stringify(headers.origin)} may not call this server` };
    }
    // A preflight request of a browser has no token.
    const isPreflight = method === 'OPTIONS' && headers.origin !== undefined;
    if (this.#token && !isPreflight && !this.#isToken(headers.authorization)) {
      return { status: 401, message: 'send the token of this server as "Authorization: Bearer <token>"' };
    }
    return undefined;
  }

  /** CORS headers, for pages of allowed origins only. */
  grant({ headers: { origin } }: IncomingMessage): Record<string, string> {
    if (origin === undefined || !this.#origins.has(origin.toLowerCase())) return {};
    return {
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Methods': 'POST, GET, DELETE',
      'Access-Control-Allow-Headers': ASKED_HEADERS,
      'Access-Control-Expose-Headers': 'Mcp-Session-Id',
      Vary: 'Origin',
    };
  }

  /** Programs on this machine may send a loopback origin. A page there gets no CORS headers. */
  #isAllowedOrigin(origin: string): boolean {
    const host = hostnameOf(/^https?:\/\/(.*)$/i.exec(origin)?.[1]);
    return (host !== undefined && LOOPBACK.includes(host)) || this.#origins.has(origin.toLowerCase());
  }

  #isToken(authorization = ''): boolean {
    const [, shown = ''] = /^Bearer +(\S+) *$/i.exec(authorization) ?? [];
    // Digests have equal length, so that the time depends on neither the length nor the place of a difference.
    return this.#token !== undefined && timingSafeEqual(digest(shown), this.#token);
  }
}

export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** The host name in a `Host` header or an origin, without its port. */
function hostnameOf(host = ''): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[^:@/?#[\]\s]+)(:\d+)?$/i.exec(host)?.[1]?.toLowerCase();
}
