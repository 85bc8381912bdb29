// The types of every subpath, as strict as a compiler can be, and the same run as the others'.
import assert from 'node:assert/strict';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import {
  type EngineInfo,
  type ExecResult,
  type OpenOptions,
  type Process,
  type Sandbox,
  SandboxError,
  type SandboxErrorCode,
  type SandboxInfo,
  SandboxManager,
  type SandboxManagerOptions,
  version,
} from 'cofferdam';
import { createCofferdamSandbox, type SandboxSession, sandboxSession, sandboxTools, type ToolSet } from 'cofferdam/ai';
import { parseSandboxConfig, type SandboxConfig } from 'cofferdam/frontmatter';
import { createMcpServer, type McpServerOptions } from 'cofferdam/mcp';
import { createFakeManager, type FakeManager, type FakeScript } from 'cofferdam/testing';
import { createToolset, type ToolDefinition, type ToolResult, type Toolset, toolDefinitions } from 'cofferdam/tools';

async function visit(): Promise<void> {
  const options: SandboxManagerOptions = { idleTimeoutMs: 60_000 };
  const manager: AsyncDisposable & SandboxManager = new SandboxManager(options);
  const opening: OpenOptions = { image: process.env.COFFERDAM_INSTALL_IMAGE ?? 'host', limits: { memoryMb: 256 } };
  const sandbox: Sandbox = await manager.open(opening);
  const info: EngineInfo = await manager.info();
  assert.equal(typeof info.backend, 'string');

  await sandbox.files.write('note.txt', new TextEncoder().encode('kept'), { mode: 0o600 });
  const result: ExecResult = await sandbox.exec(['cat', 'note.txt'], { timeoutMs: 10_000 });
  assert.equal(result.stdout, 'kept');

  const counting: Process = await sandbox.spawn('for i in 1 2 3; do echo $i; done');
  let streamed = '';
  for await (const { text } of counting) streamed += text;
  assert.equal(streamed, '1\n2\n3\n');

  const error: unknown = await sandbox.exec(['no-such-program']).catch((reason: unknown) => reason);
  assert(error instanceof SandboxError);
  const code: SandboxErrorCode = error.code;
  assert.equal(code, 'COMMAND_NOT_FOUND');

  const session: SandboxSession = sandboxSession(sandbox);
  assert.equal((await session.run({ command: 'echo session' })).stdout, 'session\n');
  const tools: ToolSet = sandboxTools(manager);
  assert('sandbox_exec' in tools);
  assert.equal(typeof createCofferdamSandbox({ manager }), 'object');

  await sandbox.close();
  const left: SandboxInfo[] = await manager.list();
  assert(!left.some(({ id }) => id === sandbox.id));
  await manager.close();
  console.log(`visited ${sandbox.id}`);
}

async function visitSubpaths(): Promise<void> {
  const config: SandboxConfig = parseSandboxConfig('python');
  assert.equal(config.runtime, 'python');
  const definitions: readonly ToolDefinition[] = toolDefinitions;
  assert(definitions.length > 0);
  const script: FakeScript = { exec: [{ command: 'npm test', stdout: '3 passed\n' }] };
  const manager: FakeManager = createFakeManager(script);
  const toolset: Toolset = createToolset(manager, {});
  const answer: ToolResult = await toolset.call('sandbox_exec', { command: 'npm test' });
  assert('stdout' in answer && answer.stdout === '3 passed\n');
  const options: McpServerOptions = { image: 'python' };
  const [near, far] = InMemoryTransport.createLinkedPair();
  const server = createMcpServer(manager, options);
  await Promise.all([server.connect(far), near.start()]);
  await server.close();
  await manager.close();
}

assert.match(version, /^\d/);
visitSubpaths().then(visit);
