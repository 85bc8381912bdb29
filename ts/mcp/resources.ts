/**
 * The files of a client's sandbox as MCP resources: list, read and subscribe.
 *
 * Never opens a sandbox: until a tool has, there are no resources. Files that `.gitignore` excludes are not listed, but can
 * be read.
 */
import { posix } from 'node:path';
import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  ErrorCode,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ReadResourceRequestSchema,
  type ReadResourceResult,
  type Resource,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { FileEntry } from '../files';
import type { Sandbox } from '../sandbox';
import { toFailure } from '../tools/failure';
import type { Toolset } from '../tools/toolset';
import { ProtocolError } from './protocol-error';
import { toPath, toUri, URI_TEMPLATE } from './resource-uri';
import { WorkspaceWatch } from './workspace-watch';

const PAGE = 500;
/** Of more files, the first ones of the file system are listed. */
const MAX_LISTED = 10_000;
const MAX_SUBSCRIPTIONS = 1_000;
/** The protocol's code, which the SDK does not name. */
const RESOURCE_NOT_FOUND = -32002;

/** Types that clients show in their own way. Others are detected by content. */
const MIME_TYPES: Readonly<Record<string, string>> = {
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.html': 'text/html',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
};

function mimeTypeOf(path: string): string | undefined {
  return MIME_TYPES[posix.extname(path).toLowerCase()];
}

function toResource(sandbox: Sandbox, { path, sizeBytes, mtimeMs }: FileEntry): Resource {
  return {
    uri: toUri(path),
    name: posix.relative(sandbox.workdir, path),
    mimeType: mimeTypeOf(path),
    size: sizeBytes,
    annotations: { lastModified: new Date(mtimeMs).toISOString() },
  };
}

function notFound(uri: string, why: string): ProtocolError {
  return new ProtocolError(RESOURCE_NOT_FOUND, `resource ${uri} not found: ${why}`, { uri });
}

function refused(message: string, uri: string, code: string): ProtocolError {
  return new ProtocolError(ErrorCode.InvalidParams, message, { uri, code });
}

/** Serves the resources of one client. */
export class Resources {
  readonly #toolset: Toolset;
  readonly #maxBytes: number;
  readonly #watch: WorkspaceWatch;

  constructor(server: Server, toolset: Toolset, maxBytes: number) {
    this.#toolset = toolset;
    this.#maxBytes = maxBytes;
    this.#watch = new WorkspaceWatch({
      onListChanged: () => server.sendResourceListChanged(),
      onUpdated: (path) => server.sendResourceUpdated({ uri: toUri(path) }),
    });
    server.registerCapabilities({ resources: { subscribe: true, listChanged: true } });
    server.setRequestHandler(ListResourcesRequestSchema, ({ params }) => this.#list(params?.cursor));
    server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
      resourceTemplates: [
        {
          name: 'file',
          title: 'File in the sandbox',
          uriTemplate: URI_TEMPLATE,
          description: 'A file of the sandbox by its absolute path without the first slash: workspace/main.py',
        },
      ],
    }));
    server.setRequestHandler(ReadResourceRequestSchema, ({ params }, { signal }) => this.#read(params.uri, signal));
    server.setRequestHandler(SubscribeRequestSchema, ({ params }) => this.#subscribe(params.uri));
    server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
      this.#watch.subscribed.delete(toPath(params.uri));
      return {};
    });
  }

  /** After a tool call, which may have opened the sandbox: starts watching if the client wants it. */
  async refresh(): Promise<void> {
    if (!this.#watch.isWanted || this.#watch.isRunning) return;
    const sandbox = await this.#toolset.sandbox();
    if (sandbox) this.#watch.begin(sandbox, { withNews: true });
  }

  end(): void {
    this.#watch.end();
  }

  async #list(cursor: string | undefined): Promise<{ resources: Resource[]; nextCursor?: string }> {
    this.#watch.isWanted = true;
    const sandbox = await this.#toolset.sandbox();
    if (!sandbox) return { resources: [] };
    // Before listing, so that no change in between is missed.
    this.#watch.begin(sandbox);
    const { entries } = await sandbox.files.glob('**', { maxResults: MAX_LISTED }).catch((error) => {
      throw new ProtocolError(ErrorCode.InternalError, toFailure(error).error);
    });
    const after = cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString();
    const files = entries.filter(({ type, path }) => type === 'file' && path > after);
    const page = files.slice(0, PAGE);
    const last = files.length > PAGE ? page.at(-1) : undefined;
    return {
      resources: page.map((entry) => toResource(sandbox, entry)),
      ...(last && { nextCursor: Buffer.from(last.path).toString('base64url') }),
    };
  }

  async #read(uri: string, signal: AbortSignal): Promise<ReadResourceResult> {
    const path = toPath(uri);
    const sandbox = await this.#toolset.sandbox();
    if (!sandbox) throw notFound(uri, 'no sandbox is open yet; call a tool that opens it first');
    try {
      const content = await sandbox.files.read(path, { maxBytes: this.#maxBytes, signal });
      if (content.truncated) {
        const message = `resource ${uri} has ${content.sizeBytes} bytes, but a resource may have at most ${this.#maxBytes}; read a part of it with a tool`;
        throw refused(message, uri, 'LIMIT_EXCEEDED');
      }
      return { contents: [toContents(uri, path, content.bytes)] };
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      // The text for models, which quotes nothing of the host.
      const failure = toFailure(error);
      if (failure.code === 'FILE_NOT_FOUND') throw notFound(uri, failure.error);
      throw refused(failure.error, uri, failure.code);
    }
  }

  async #subscribe(uri: string): Promise<Record<string, never>> {
    const path = toPath(uri);
    const { subscribed } = this.#watch;
    if (subscribed.size >= MAX_SUBSCRIPTIONS && !subscribed.has(path)) {
      const message = `cannot subscribe to ${uri}: the limit of ${MAX_SUBSCRIPTIONS} subscriptions is reached; end some first`;
      throw refused(message, uri, 'LIMIT_EXCEEDED');
    }
    const sandbox = await this.#toolset.sandbox();
    if (sandbox && !path.startsWith(posix.join(sandbox.workdir, '/'))) {
      throw refused(`only files under ${sandbox.workdir} are watched, and ${path} is not`, uri, 'UNSUPPORTED');
    }
    this.#watch.isWanted = true;
    subscribed.add(path);
    if (sandbox) this.#watch.begin(sandbox);
    return {};
  }
}

/** As text if all of it is text, otherwise as base64. */
function toContents(uri: string, path: string, bytes: Uint8Array): ReadResourceResult['contents'][number] {
  const mimeType = mimeTypeOf(path);
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    if (!text.includes('\0')) return { uri, mimeType: mimeType ?? 'text/plain', text };
  } catch {
    // Not UTF-8.
  }
  return { uri, mimeType: mimeType ?? 'application/octet-stream', blob: Buffer.from(bytes).toString('base64') };
}
