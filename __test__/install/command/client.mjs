// An MCP client of `npx cofferdam mcp`: the program that was installed, with a sandbox behind it.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const transport = new StdioClientTransport({
  command: 'npx',
  args: ['cofferdam', 'mcp', '--image', process.env.COFFERDAM_INSTALL_IMAGE],
  env: process.env,
});
const client = new Client({ name: 'install', version: '1' });
await client.connect(transport);
const call = async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent;
const { sandbox_id: id } = await call('sandbox_open', {});
assert.equal((await call('sandbox_exec', { command: 'echo answered' })).stdout, 'answered\n');
await client.close();
console.log(`visited ${id}`);
