/**
 * Who may speak to the HTTP server at all: checked before anything of a request but its head is read.
 *
 * A page in a browser may not, whatever name it made point here (DNS rebinding); beyond loopback nobody may without the
 * token.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { SandboxError } from '../errors';
import * as check from '../internal/check';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
/** What clients send beyond what every page may. */
const ASKED_HEADERS = 'Authorization, Content-Type, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id';
const EVERY_ADDRESS = ['0.0.0.0', '::', '[::]'];

export interface GuardOptions {
  /** Where the server listens. */
  host: string;
  /** What clients must show as `Authorization: Bearer …`. Needed where others than this machine can connect. */
  token?: string;
  /** Names by which clients may call the server, beyond loopback's and that of `host`. */
  allowedHosts?: readonly string[];
  /** Origins of pages that may call the server from a browser: `https://app.example.com`. */
  allowedOrigins?: readonly string[];
}

/** Why a request is turned away. */
export interface Refusal {
  status: 401 | 403;
  message: string;
}

export class Guard {
  readonly #token: Buffer | undefined;
  /** None where every name may be: the token is what guards then. */
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
      const message = `listening on ${host} lets other machines run commands here: give a token, or listen on 127.0.0.1`;
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

  /** Nothing, for a request that may go on. */
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
    // Browsers ask beforehand, without the token, what a page may send.
    const isAsking = method === 'OPTIONS' && headers.origin !== undefined;
    if (this.#token && !isAsking && !this.#isToken(headers.authorization)) {
      return { status: 401, message: 'send the token of this server as "Authorization: Bearer <token>"' };
    }
    return undefined;
  }

  /** The headers by which a browser lets a page of an allowed origin go on, and no other page. */
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

  /** Programs on this machine may say that they are on loopback; a page there is not granted anything by that. */
  #isAllowedOrigin(origin: string): boolean {
    const host = hostnameOf(/^https?:\/\/(.*)$/i.exec(origin)?.[1]);
    return (host !== undefined && LOOPBACK.includes(host)) || this.#origins.has(origin.toLowerCase());
  }

  #isToken(authorization = ''): boolean {
    const [, shown = ''] = /^Bearer +(\S+) *$/i.exec(authorization) ?? [];
    // Of equal length by their digests, so that neither the length nor the place of a difference takes its own time.
    return this.#token !== undefined && timingSafeEqual(digest(shown), this.#token);
  }
}

export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host);
}

function digest(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** The name in a `Host` header or behind the scheme of an origin, without its port. */
function hostnameOf(host = ''): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[^:@/?#[\]\s]+)(:\d+)?$/i.exec(host)?.[1]?.toLowerCase();
}
