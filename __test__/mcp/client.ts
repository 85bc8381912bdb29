/** The official SDK's own client, as the suites of MCP use it. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { SandboxManager } from 'cofferdam';
import { createMcpServer, type McpServerOptions } from 'cofferdam/mcp';

const clients: Client[] = [];

/** A client at the other end of a transport, closed after the suite. */
export async function clientOver(transport: Transport): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' });
  clients.push(client);
  await client.connect(transport);
  return client;
}

/** A client with a server of its own, in this program. */
export async function clientOf(manager: SandboxManager, options?: McpServerOptions): Promise<Client> {
  const [near, far] = InMemoryTransport.createLinkedPair();
  await createMcpServer(manager, options).connect(far);
  return clientOver(near);
}

/** A call, as the client checked it against the tool's own schema. */
export async function call(
  client: Client,
  name: string,
  input: Record<string, unknown> = {},
  options?: Parameters<Client['callTool']>[2],
): Promise<CallToolResult & { structuredContent: Record<string, unknown> }> {
  return (await client.callTool({ name, arguments: input }, undefined, options)) as never;
}

/** What a command in the client's sandbox prints. */
export async function stdoutOf(client: Client, command: string): Promise<unknown> {
  return (await call(client, 'sandbox_exec', { command })).structuredContent.stdout;
}

/** The id of the client's sandbox, which is opened if it is not. */
export async function sandboxId(client: Client): Promise<string> {
  return String((await call(client, 'sandbox_open')).structuredContent.sandbox_id);
}

/** Whether the engine still has it. */
export async function isOnEngine(manager: SandboxManager, id: string): Promise<boolean> {
  return (await manager.list()).some((info) => info.id === id);
}

afterAll(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
});
