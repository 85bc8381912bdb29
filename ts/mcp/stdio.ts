/** Serves one client on standard input and output, which carry nothing but the protocol. */
import type { Readable, Writable } from 'node:stream';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { SandboxManager } from '../manager';
import { createMcpServer, type McpServerOptions } from './server';

export interface McpStdioOptions extends McpServerOptions {
  /**
   * Where messages of the client come from.
   *
   * @default process.stdin
   */
  stdin?: Readable;
  /**
   * Where messages to the client go.
   *
   * @default process.stdout
   */
  stdout?: Writable;
  /** Stops the server. */
  signal?: AbortSignal;
  /** Called with errors outside of calls, such as lines that are not messages. */
  onError?: (error: Error) => void;
}

/**
 * Serves the client on standard input and output until it disconnects or `signal` aborts. Resolves when its session is closed.
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
    // The client died: nobody reads the output.
    stdout.on('error', leave);
    signal?.addEventListener('abort', leave, { once: true });
    server.server.onclose = leave;
  });
  await server.connect(new StdioServerTransport(stdin, stdout));
  await left;
  await server.close();
}
