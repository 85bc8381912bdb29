// What every consumer does with the package that was installed for it. It prints the sandboxes it had, and must end by itself.
const assert = require('node:assert/strict');

const image = process.env.COFFERDAM_INSTALL_IMAGE;

async function visit({ SandboxManager, Sandbox, SandboxError, version }) {
  assert.match(version, /^\d+\.\d+\.\d+/);
  const manager = new SandboxManager();
  const sandbox = await manager.open({ image });
  assert(sandbox instanceof Sandbox);

  await sandbox.files.write('note.txt', 'kept');
  const { stdout, exitCode } = await sandbox.exec('cat note.txt; exit 3');
  assert.deepEqual({ stdout, exitCode }, { stdout: 'kept', exitCode: 3 });

  const counting = await sandbox.spawn('for i in 1 2 3; do echo $i; sleep 0.02; done; echo end >&2');
  const streamed = { stdout: '', stderr: '' };
  for await (const { stream, text } of counting) streamed[stream] += text;
  assert.deepEqual(streamed, { stdout: '1\n2\n3\n', stderr: 'end\n' });

  const error = await sandbox.exec(['no-such-program']).catch((reason) => reason);
  assert(error instanceof SandboxError && error instanceof Error, `${error} is no SandboxError`);
  assert.equal(error.code, 'COMMAND_NOT_FOUND');

  await sandbox.close();
  assert(!(await manager.list()).some(({ id }) => id === sandbox.id), `${sandbox.id} is still there`);
  await manager.close();
  // Not console.log: test runners keep that for themselves.
  process.stdout.write(`visited ${sandbox.id}\n`);
}

/** Every subpath has what it is for, by name. */
async function visitSubpaths({ ai, frontmatter, mcp, testing, tools }) {
  const { sandboxSession, sandboxTools, createCofferdamSandbox } = ai;
  const { createToolset, toolDefinitions, openaiTools, anthropicTools } = tools;
  const { createMcpServer, serveHttp, serveStdio } = mcp;
  for (const made of [sandboxSession, createCofferdamSandbox, openaiTools, anthropicTools, serveHttp, serveStdio]) {
    assert.equal(typeof made, 'function');
  }
  assert.equal(frontmatter.parseSandboxConfig('python').runtime, 'python');
  assert(toolDefinitions.some(({ name }) => name === 'sandbox_exec'));

  const manager = testing.createFakeManager({ exec: [{ command: 'npm test', stdout: '3 passed\n' }] });
  assert('sandbox_exec' in sandboxTools(manager));
  assert(createMcpServer(manager));
  const toolset = createToolset(manager, {});
  const { stdout } = await toolset.call('sandbox_exec', { command: 'npm test' });
  assert.equal(stdout, '3 passed\n');
  await manager.close();
}

module.exports = { visit, visitSubpaths };
