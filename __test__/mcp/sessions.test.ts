import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { createMcpServer } from 'cofferdam/mcp';
import { ground } from '../ground';
import { countProcesses, describeWithEngine, IMAGES, testManager, unique, until } from '../support';
import { call, clientOf, clientOver, isOnEngine, sandboxId, stdoutOf } from './client';

describeWithEngine('an MCP client’s session', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });

  test('is its own: another client neither sees its files nor reaches it by id or name', async () => {
    const [ann, bob] = await Promise.all([clientOf(manager), clientOf(manager)]);
    await call(ann, 'sandbox_fs_write', { path: 'secret.txt', content: 'ann’s' });
    expect(await stdoutOf(bob, 'ls')).toBe('');
    const id = await sandboxId(ann);
    expect(await sandboxId(bob)).not.toBe(id);
    const reached = await call(bob, 'sandbox_exec', { command: 'cat secret.txt', sandbox_id: id });
    expect(reached.structuredContent).toMatchObject({ ok: false, code: 'SANDBOX_NOT_FOUND' });
    const [one, two] = await Promise.all([ann, bob].map((client) => call(client, 'sandbox_open', { session: 'same' })));
    expect(one?.structuredContent.sandbox_id).not.toBe(two?.structuredContent.sandbox_id);
    expect((await bob.listResources()).resources).toEqual([]);
  });

  test('costs no sandbox before a tool is called', async () => {
    const label = unique();
    const client = await clientOf(manager, { labels: { mcp: label } });
    await client.listTools();
    await client.listResources();
    await client.listResourceTemplates();
    expect(await ground.labelled('mcp', label)).toHaveLength(0);
    await call(client, 'sandbox_open');
    expect(await ground.labelled('mcp', label)).toHaveLength(1);
  });

  test('ends when the client leaves, with all that it had', async () => {
    const label = unique();
    const client = await clientOf(manager, { labels: { mcp: label } });
    await Promise.all([call(client, 'sandbox_open'), call(client, 'sandbox_open', { session: 'second' })]);
    expect(await ground.labelled('mcp', label)).toHaveLength(2);
    await client.close();
    await until(async () => (await ground.labelled('mcp', label)).length === 0);
  });

  test('is closed when close() of the server resolves, also while a call is under way', async () => {
    const [near, far] = InMemoryTransport.createLinkedPair();
    const server = createMcpServer(manager);
    await server.connect(far);
    const client = await clientOver(near);
    const id = await sandboxId(client);
    const running = call(client, 'sandbox_exec', { command: 'sleep 1000' }).catch((error) => error);
    const sandbox = await manager.get(id);
    await until(async () => (await countProcesses(sandbox, 'sleep 1000')) > 0);
    await server.close();
    expect(await isOnEngine(manager, id)).toBe(false);
    expect(await running).toMatchObject({ message: expect.stringContaining('closed') });
    await server.close();
  });

  test('is shared by scope, and stays when one client leaves; what that one ran has ended by then', async () => {
    const scope = { workflow: unique() };
    const [near, far] = InMemoryTransport.createLinkedPair();
    const server = createMcpServer(manager, { scope });
    await server.connect(far);
    const [ann, bob] = await Promise.all([clientOver(near), clientOf(manager, { scope })]);
    await call(ann, 'sandbox_fs_write', { path: 'plan.txt', content: 'shared' });
    expect(await stdoutOf(bob, 'cat plan.txt')).toBe('shared');
    const sandbox = await manager.open({ scope });
    expect(sandbox.id).toBe(await sandboxId(bob));
    const running = call(ann, 'sandbox_exec', { command: 'trap "" TERM; sleep 876543; true' }).catch((error) => error);
    await until(async () => (await countProcesses(sandbox, 'sleep 876543')) > 0);
    await server.close();
    expect(await countProcesses(sandbox, 'sleep 876543')).toBe(0);
    await running;
    expect(await stdoutOf(bob, 'cat plan.txt')).toBe('shared');
  });
});
