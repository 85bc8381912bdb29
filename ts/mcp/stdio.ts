/** One client on standard input and output: the protocol and nothing else goes there. */
import type { Readable, Writable } from 'node:stream';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { SandboxManager } from '../manager';
import { createMcpServer, type McpServerOptions } from './server';

export interface McpStdioOptions extends McpServerOptions {
  /** The program's own unless told. */
  stdin?: Readable;
  /** The program's own unless told. */
  stdout?: Writable;
  /** Ends it. */
  signal?: AbortSignal;
  /** Told of what went wrong beside the calls, such as lines that are no messages. */
  onError?: (error: Error) => void;
}

/**
 * Serves the client at standard input and output until it leaves or `signal` aborts; resolves when its session is closed.
 *
 * @example
 * ```ts
 * await serveStdio(manager, { image: 'python' });
 * ```
 */
export async function serveStdio(manager: SandboxManager, options: McpStdioOptions = {}): Promise<void> {
  const { stdin = process.stdin, stdout = process.stdout, signal, onError, ...rest } = options;
  if (signal?.aborted) return;
  const server = createMcpServer(manager, rest);
  server.server.onerror = onError;
  const left = new Promise<void>((resolve) => {
    const leave = () => resolve();
    // The transport does not listen for the end of its input.
    stdin.once('end', leave).once('close', leave);
    // A client that died: nobody reads any more.
    stdout.on('error', leave);
    signal?.addEventListener('abort', leave, { once: true });
    server.server.onclose = leave;
  });
  await server.connect(new StdioServerTransport(stdin, stdout));
  await left;
  await server.close();
}
