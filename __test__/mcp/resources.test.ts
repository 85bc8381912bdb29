import {
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { describeWithEngine, IMAGES, testManager, until } from '../support';
import { call, clientOf, stdoutOf } from './client';

describeWithEngine('a workspace’s files as MCP resources', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });

  test('are listed with name, type, size and time, without what .gitignore leaves out', async () => {
    const client = await clientOf(manager);
    const before = Date.now();
    await call(client, 'sandbox_fs_write', { path: 'docs/read me.md', content: '# hello' });
    await stdoutOf(client, 'echo build > .gitignore; mkdir build empty; echo x > build/out');
    const { resources } = await client.listResources();
    expect(resources.map(({ name }) => name)).toEqual(['.gitignore', 'docs/read me.md']);
    const [, readme] = resources;
    expect(readme).toMatchObject({ uri: 'sandbox:///workspace/docs/read%20me.md', mimeType: 'text/markdown', size: 7 });
    const modified = Date.parse(String(readme?.annotations?.lastModified));
    expect(Math.abs(modified - before)).toBeLessThan(600_000);
  });

  test('are listed page by page, each once', async () => {
    const client = await clientOf(manager);
    await stdoutOf(client, 'i=0; while [ $i -lt 1201 ]; do i=$((i+1)); : > "f$i"; done');
    const names: string[] = [];
    const pages: number[] = [];
    let cursor: string | undefined;
    do {
      const page = await client.listResources({ cursor });
      names.push(...page.resources.map(({ name }) => name));
      pages.push(page.resources.length);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(pages).toEqual([500, 500, 201]);
    expect(new Set(names).size).toBe(1201);
  });

  test('are read as text, or as base64 where they are not', async () => {
    const client = await clientOf(manager);
    const uri = 'sandbox:///workspace/na%C3%AFve%20%231.txt';
    await call(client, 'sandbox_fs_write', { path: 'naïve #1.txt', content: '\ufeffça va?\n' });
    expect((await client.listResources()).resources[0]?.uri).toBe(uri);
    expect((await client.readResource({ uri })).contents).toEqual([
      { uri, mimeType: 'text/plain', text: '\ufeffça va?\n' },
    ]);
    await stdoutOf(client, "printf '\\377\\000\\001' > raw; printf 'a\\000b' > nul.txt; printf '\\211PNG' > dot.png");
    const read = async (name: string) =>
      (await client.readResource({ uri: `sandbox:///workspace/${name}` })).contents[0];
    expect(await read('raw')).toMatchObject({ mimeType: 'application/octet-stream', blob: '/wAB' });
    expect(await read('nul.txt')).toMatchObject({ blob: Buffer.from('a\0b').toString('base64') });
    expect(await read('dot.png')).toMatchObject({ mimeType: 'image/png', blob: 'iVBORw==' });
    expect((await client.readResource({ uri: 'sandbox:///etc/hostname' })).contents[0]).toHaveProperty('text');
  });

  test('can be read by the template that the server gives', async () => {
    const client = await clientOf(manager);
    await call(client, 'sandbox_fs_write', { path: 'a/b.txt', content: 'deep' });
    const [template] = (await client.listResourceTemplates()).resourceTemplates;
    const uri = String(template?.uriTemplate).replace('{+path}', 'workspace/a/b.txt');
    expect((await client.readResource({ uri })).contents[0]).toMatchObject({ text: 'deep' });
  });

  test('that are missing, too long or none of the sandbox’s are errors that say why', async () => {
    const client = await clientOf(manager, { maxResourceBytes: 10 });
    const read = (uri: string) => client.readResource({ uri });
    await expect(read('sandbox:///workspace/x')).rejects.toMatchObject({
      code: -32002,
      message: expect.stringContaining('no sandbox is open'),
    });
    await stdoutOf(client, 'printf 0123456789 > ten; printf 0123456789a > eleven');
    expect((await read('sandbox:///workspace/ten')).contents[0]).toMatchObject({ text: '0123456789' });
    await expect(read('sandbox:///workspace/eleven')).rejects.toMatchObject({
      code: -32602,
      data: { code: 'LIMIT_EXCEEDED' },
      message: expect.stringContaining('11 bytes'),
    });
    await expect(read('sandbox:///workspace/x')).rejects.toMatchObject({
      code: -32002,
      data: { uri: 'sandbox:///workspace/x' },
    });
    await expect(read('sandbox:///workspace')).rejects.toMatchObject({ data: { code: 'IS_A_DIRECTORY' } });
    for (const uri of ['file:///etc/passwd', 'sandbox:///%', 'sandbox://workspace/x', '../x']) {
      await expect(read(uri)).rejects.toMatchObject({
        code: -32602,
        message: expect.stringContaining('is not a file of the sandbox'),
      });
    }
  });

  test('that the policy blocks are not given', async () => {
    const guarded = testManager({ defaults: { image: IMAGES.alpine }, policy: { blockedPaths: ['**/.env'] } });
    const client = await clientOf(guarded);
    await stdoutOf(client, 'echo SECRET > .env');
    await expect(client.readResource({ uri: 'sandbox:///workspace/.env' })).rejects.toMatchObject({
      data: { code: 'PATH_BLOCKED' },
    });
    await expect(client.readResource({ uri: 'sandbox:///workspace/x/..%2F.env' })).rejects.toMatchObject({
      data: { code: 'PATH_BLOCKED' },
    });
  });

  test('that come and go are told to who listed them, also before there was a sandbox', async () => {
    const client = await clientOf(manager);
    let changes = 0;
    client.setNotificationHandler(ResourceListChangedNotificationSchema, () => {
      changes += 1;
    });
    expect((await client.listResources()).resources).toEqual([]);
    await call(client, 'sandbox_fs_write', { path: 'new.txt', content: '1' });
    await until(async () => changes > 0 && (await client.listResources()).resources.length === 1);
    const seen = changes;
    await stdoutOf(client, 'rm new.txt');
    await until(() => changes > seen);
    expect((await client.listResources()).resources).toEqual([]);
  });

  test('are told to who subscribed when they change, and no longer after unsubscribing', async () => {
    const client = await clientOf(manager);
    const updated: string[] = [];
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      updated.push(params.uri);
    });
    await stdoutOf(client, 'mkdir dir; echo 1 > dir/watched; echo 1 > other');
    const uri = 'sandbox:///workspace/dir/watched';
    await client.subscribeResource({ uri });
    await stdoutOf(client, 'echo 2 > other; echo 2 > dir/watched');
    await until(() => updated.length > 0);
    expect(new Set(updated)).toEqual(new Set([uri]));
    // A file is gone also when its folder is moved away.
    updated.length = 0;
    await stdoutOf(client, 'mv dir elsewhere');
    await until(() => updated.includes(uri));
    await expect(client.subscribeResource({ uri: 'sandbox:///etc/hosts' })).rejects.toThrow(
      'only files under /workspace',
    );
    await client.unsubscribeResource({ uri });
    await client.subscribeResource({ uri: 'sandbox:///workspace/other' });
    updated.length = 0;
    await stdoutOf(client, 'mkdir dir; echo 3 > dir/watched; echo 3 > other');
    await until(() => updated.length > 0);
    expect(updated).not.toContain(uri);
  });

  test('are gone with the sandbox, which looking does not bring back', async () => {
    const client = await clientOf(manager);
    await call(client, 'sandbox_fs_write', { path: 'a.txt', content: '1' });
    expect((await client.listResources()).resources).toHaveLength(1);
    await call(client, 'sandbox_close');
    expect((await client.listResources()).resources).toEqual([]);
    await expect(client.readResource({ uri: 'sandbox:///workspace/a.txt' })).rejects.toMatchObject({ code: -32002 });
    await call(client, 'sandbox_fs_write', { path: 'b.txt', content: '1' });
    expect((await client.listResources()).resources.map(({ name }) => name)).toEqual(['b.txt']);
  });
});
