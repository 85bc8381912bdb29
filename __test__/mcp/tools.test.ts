import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { Progress } from '@modelcontextprotocol/sdk/types.js';
import { version } from 'cofferdam';
import { createMcpServer } from 'cofferdam/mcp';
import { createToolset } from 'cofferdam/tools';
import { countProcesses, describeWithEngine, IMAGES, testManager, until } from '../support';
import { call, clientOf, clientOver, sandboxId, stdoutOf } from './client';

describeWithEngine('the MCP server’s tools', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });

  test('are those of the toolset, with the same schemas', async () => {
    const client = await clientOf(manager);
    const { tools } = await client.listTools();
    await using toolset = createToolset(manager, {});
    expect(
      tools.map(({ name, description, inputSchema, outputSchema }) => ({
        name,
        description,
        inputSchema,
        outputSchema,
      })),
    ).toEqual(toolset.tools);
    expect(tools.map(({ name }) => name)).toContain('sandbox_exec');
  });

  test('each say whether they only read, and whether they may destroy', async () => {
    const client = await clientOf(manager, { network: false });
    const { tools } = await client.listTools();
    const byName = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
    for (const { annotations } of tools) {
      expect(typeof annotations?.title).toBe('string');
      expect(typeof annotations?.readOnlyHint).toBe('boolean');
      expect(annotations?.openWorldHint).toBe(false);
    }
    expect(byName.sandbox_fs_read).toMatchObject({ readOnlyHint: true });
    expect(byName.sandbox_fs_list).toMatchObject({ readOnlyHint: true });
    expect(byName.sandbox_exec).toMatchObject({ readOnlyHint: false, destructiveHint: true });
    expect(byName.sandbox_fs_delete).toMatchObject({ readOnlyHint: false, destructiveHint: true });
    const networked = await clientOf(manager, { network: true });
    expect((await networked.listTools()).tools[0]?.annotations?.openWorldHint).toBe(true);
    // Then the manager's defaults decide.
    const untold = await clientOf(manager);
    expect((await untold.listTools()).tools[0]?.annotations).not.toHaveProperty('openWorldHint');
  });

  test('are only those that were included', async () => {
    const client = await clientOf(manager, { include: ['sandbox_exec'] });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['sandbox_exec']);
    await expect(call(client, 'sandbox_fs_read', { path: 'x' })).rejects.toThrow(
      /no tool "sandbox_fs_read".*sandbox_exec/,
    );
  });

  test('in compute mode are one-shot runs alone, and there are no resources', async () => {
    const client = await clientOf(manager, { mode: 'compute' });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['sandbox_run']);
    expect(client.getServerCapabilities()).not.toHaveProperty('resources');
    expect(client.getInstructions()).toContain('gone afterwards');
    const ran = await call(client, 'sandbox_run', { runtime: 'bash', code: 'echo $((6 * 7))' });
    expect(ran.structuredContent).toMatchObject({ exit_code: 0, stdout: '42\n' });
  });

  test('are introduced by name, version and instructions', async () => {
    const client = await clientOf(manager, { workdir: '/srv/work', network: false });
    expect(client.getServerVersion()).toMatchObject({ name: 'cofferdam', version });
    expect(client.getInstructions()).toContain('/srv/work');
    expect(client.getInstructions()).toContain('no network');
    const told = await clientOf(manager, { instructions: 'Only for sums.' });
    expect(told.getInstructions()).toBe('Only for sums.');
  });

  test('answer with the result as data and as text', async () => {
    const client = await clientOf(manager);
    await client.listTools(); // from now on the client checks results against their schemas
    await call(client, 'sandbox_fs_write', { path: 'a.txt', content: 'one\ntwo\n' });
    const result = await call(client, 'sandbox_exec', { command: 'wc -l < a.txt; echo oh >&2; exit 3' });
    expect(result.structuredContent).toMatchObject({ exit_code: 3, stdout: '2\n', stderr: 'oh\n' });
    expect(result.isError).toBeUndefined();
    const [content] = result.content;
    expect(content?.type === 'text' && JSON.parse(content.text)).toEqual(result.structuredContent);
  });

  test('answer what could not be done as an error that a model can read', async () => {
    const client = await clientOf(manager);
    await client.listTools();
    const missing = await call(client, 'sandbox_fs_read', { path: 'missing.txt' });
    expect(missing.isError).toBe(true);
    expect(missing.structuredContent).toMatchObject({
      ok: false,
      code: 'FILE_NOT_FOUND',
      error: expect.stringContaining('missing.txt'),
    });
    const wrong = await call(client, 'sandbox_exec', { command: 7 });
    expect(wrong.isError).toBe(true);
    expect(wrong.structuredContent).toMatchObject({ ok: false, code: 'INVALID_ARGUMENT' });
    const image = await call(client, 'sandbox_open', { image: 'localhost:1/no/such:image', session: 'other' });
    expect(image.isError).toBe(true);
    expect(image.structuredContent).toMatchObject({ ok: false, code: 'IMAGE_NOT_FOUND' });
  });

  test('tell whoever runs the server what a model is not told', async () => {
    const unreachable = testManager({ docker: { host: 'unix:///no/such/engine.sock' } });
    const [near, far] = InMemoryTransport.createLinkedPair();
    const server = createMcpServer(unreachable);
    const told: Error[] = [];
    server.server.onerror = (error) => told.push(error);
    await server.connect(far);
    const client = await clientOver(near);
    const failed = await call(client, 'sandbox_exec', { command: 'true' });
    expect(failed).toMatchObject({ isError: true, structuredContent: { code: 'ENGINE_UNAVAILABLE' } });
    expect(JSON.stringify(failed)).not.toContain('engine.sock');
    expect(told.map(({ message }) => message)).toEqual([expect.stringContaining('engine.sock')]);
    await call(client, 'sandbox_exec', { command: 7 });
    expect(told).toHaveLength(1);
  });

  test('that do not exist are a protocol error which names those that do', async () => {
    const client = await clientOf(manager);
    await expect(call(client, 'sandbox_fly')).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('sandbox_exec'),
    });
  });

  test('tell a command’s output while it runs', async () => {
    const client = await clientOf(manager);
    const steps: Progress[] = [];
    let heard = () => {};
    const first = new Promise<void>((resolve) => {
      heard = resolve;
    });
    const onprogress = (step: Progress) => {
      steps.push(step);
      if (steps.some(({ message }) => message?.includes('first'))) heard();
    };
    const command = 'echo first; until [ -e go ]; do sleep 0.05; done; echo last >&2';
    const running = call(client, 'sandbox_exec', { command }, { onprogress });
    await first; // while the command waits for the file
    await call(client, 'sandbox_fs_write', { path: 'go', content: '' });
    expect((await running).structuredContent).toMatchObject({ exit_code: 0, stdout: 'first\n', stderr: 'last\n' });
    expect(steps.map(({ message }) => message).join('')).toBe('first\nlast\n');
    const values = steps.map(({ progress }) => progress);
    expect(values).toEqual([...values].sort((a, b) => a - b));
    expect(new Set(values).size).toBe(values.length);
  });

  test('tell only the newest of very much output, and say how much was left out', async () => {
    const client = await clientOf(manager);
    const steps: Progress[] = [];
    const command = 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); echo "line $i"; done';
    await call(client, 'sandbox_exec', { command }, { onprogress: (step) => steps.push(step) });
    const told = steps.map(({ message }) => message ?? '').join('');
    expect(told).toContain('characters left out');
    expect(told.endsWith('line 200000\n')).toBe(true);
    for (const { message = '' } of steps) expect(message.length).toBeLessThan(17_000);
  });

  test('are cancelled by the client, and nothing of the command is left', async () => {
    const client = await clientOf(manager);
    const sandbox = await manager.get(await sandboxId(client));
    const cancel = new AbortController();
    const command = '(setsid sleep 987654 &) ; sleep 987654';
    const running = call(client, 'sandbox_exec', { command }, { signal: cancel.signal });
    await until(async () => (await countProcesses(sandbox, 'sleep 987654')) >= 2);
    cancel.abort('enough');
    await expect(running).rejects.toThrow('enough');
    await until(async () => (await countProcesses(sandbox, 'sleep 987654')) === 0);
    expect(await stdoutOf(client, 'echo well')).toBe('well\n');
  });

  test('are refused with words when the options are wrong', async () => {
    await expect(clientOf(manager, { maxResourceBytes: -1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(clientOf(manager, { instructions: 7 as never })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});
