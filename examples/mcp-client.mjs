// What an MCP client does with a sandbox: list the tools, write a program, stream its output, cancel another
// one, and read the files. The client is the official SDK's, the server is `cofferdam mcp`; no model, no API key.
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const main = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const args = [main, 'mcp', '--image', process.argv[2] ?? 'linux'];
const client = new Client({ name: 'example', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command: process.execPath, args, env: process.env }));

async function call(name, input, options) {
  const started = performance.now();
  const { structuredContent, isError } = await client.callTool({ name, arguments: input }, undefined, options);
  const took = (performance.now() - started).toFixed(1);
  console.log(`\n▸ ${name} ${JSON.stringify(input)}  (${took} ms)${isError ? ' failed' : ''}`);
  return structuredContent;
}

try {
  console.log(client.getInstructions());
  const { tools } = await client.listTools();
  for (const { name, annotations } of tools) console.log(`  ${name.padEnd(18)} ${annotations.title}`);

  const opened = await call('sandbox_open', {});
  console.log(`  ${opened.sandbox_id} on ${opened.image}, working in ${opened.workdir}`);

  const script = 'for i in 1 2 3; do echo "tick $i"; sleep 0.3; done\n';
  await call('sandbox_fs_write', { path: 'ticks.sh', content: script });
  const onprogress = ({ message }) => process.stdout.write(message.replace(/^(?=.)/gm, '  │ '));
  const ran = await call('sandbox_exec', { command: 'sh ticks.sh' }, { onprogress });
  if (ran.stdout !== 'tick 1\ntick 2\ntick 3\n') throw new Error('the program should have ticked three times');

  const missing = await call('sandbox_fs_read', { path: 'missing.txt' });
  console.log(`  ${missing.code}: ${missing.error}\n  ${missing.hint}`);

  const stopped = await call('sandbox_exec', { command: 'sleep 1000' }, { signal: AbortSignal.timeout(300) }).catch(
    () => 'cancelled',
  );
  await call('sandbox_exec', { command: 'while cat /proc/[0-9]*/cmdline | grep -aq "[s]leep"; do :; done' });
  console.log(`  ${stopped}, and nothing of it is left`);

  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri: resources[0].uri });
  console.log(`\n▸ resource ${resources[0].uri}\n${contents[0].text.replace(/^(?=.)/gm, '  │ ')}`);
} finally {
  // The server closes the sandbox and exits.
  await client.close();
}
