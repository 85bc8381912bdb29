/**
 * Sandboxes for clients of the Model Context Protocol. Needs the package `@modelcontextprotocol/sdk`.
 *
 * @example
 * ```ts
 * import { SandboxManager } from 'cofferdam';
 * import { serveHttp } from 'cofferdam/mcp';
 *
 * await using manager = new SandboxManager({ defaults: { image: 'python' } });
 * const server = await serveHttp(manager);
 * console.log(server.url); // http://127.0.0.1:8808/mcp
 * ```
 *
 * @module cofferdam/mcp
 */
export { type McpHttpOptions, type McpHttpServer, serveHttp } from './http';
export { createMcpServer, type McpServerOptions } from './server';
export { type McpStdioOptions, serveStdio } from './stdio';
