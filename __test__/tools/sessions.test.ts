import { SandboxManager } from 'cofferdam';
import { ground } from '../ground';
import { describeWithEngine, testManager, unique } from '../support';
import { done, refused, tools } from './toolbox';

describeWithEngine('sandbox_open and sandbox_close', () => {
  const manager = testManager();

  test('give the session with all the fields a model may look for', async () => {
    const workflow = unique();
    const opened = await done(tools(manager, { scope: { workflow } }), 'sandbox_open');
    expect(opened).toMatchObject({ image: 'ubuntu:22.04', workdir: '/workspace', created: true, status: 'ready' });
    expect(opened.sandbox_id).toMatch(/^sbx_/);
    expect(opened.session_id).toBe(`workflow:${workflow}:default`);
    await manager.endScope({ workflow });
  });

  test('are not needed: the first call of any tool opens the session, and only one', async () => {
    const label = unique('label');
    const own = tools(manager, { labels: { test: label } });
    const outputs = await Promise.all(
      Array.from({ length: 8 }, (_, index) => done(own, 'sandbox_exec', { command: `echo ${index} >> all; hostname` })),
    );
    expect(new Set(outputs.map(({ stdout }) => stdout)).size).toBe(1);
    expect(await ground.labelled('test', label)).toHaveLength(1);
    expect(await done(own, 'sandbox_open')).toMatchObject({ created: false });
    await own.close();
    expect(await ground.labelled('test', label)).toHaveLength(0);
  });

  test('keep what a model chose: an image, and further sessions by name or id', async () => {
    const own = tools(manager);
    const other = await done(own, 'sandbox_open', { image: 'alpine:3.19', session: 'other' });
    expect(other).toMatchObject({ image: 'alpine:3.19', created: true });
    const here = await done(own, 'sandbox_open');
    expect(here).toMatchObject({ image: 'ubuntu:22.04', created: true });
    for (const id of [other.sandbox_id, other.session_id]) {
      const { stdout } = await done(own, 'sandbox_exec', { command: 'readlink -f /bin/ls', sandbox_id: id });
      expect(stdout).toBe('/bin/busybox\n');
    }
    expect(await done(own, 'sandbox_open', { session_key: 'other' })).toMatchObject({
      sandbox_id: other.sandbox_id,
      created: false,
    });
    const refusal = await refused(own, 'sandbox_open', { image: 'python' });
    expect(refusal).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(refusal.error).toContain('ubuntu:22.04');
  });

  test('make a session again with the image that the model chose', async () => {
    const own = tools(manager);
    const [, , chosen] = await Promise.all([
      done(own, 'sandbox_open', { session: 'py', image: 'alpine:3.19' }),
      done(own, 'sandbox_open', { session: 'py', image: 'alpine:3.19' }),
      done(own, 'sandbox_open', { session: 'py', image: 'alpine:3.19' }),
    ]);
    const { sandbox_id } = chosen;
    await done(own, 'sandbox_close', { sandbox_id });
    expect(await done(own, 'sandbox_open', { session: 'py' })).toMatchObject({ image: 'alpine:3.19', created: true });
  });

  test('refuse another image than the one that is just being opened', async () => {
    const own = tools(manager);
    const [first, second] = await Promise.all([
      done(own, 'sandbox_exec', { command: 'readlink -f /bin/ls' }),
      own.call('sandbox_open', { image: 'alpine:3.19' }),
    ]);
    expect(first).toMatchObject({ stdout: '/usr/bin/ls\n' });
    expect(second).toMatchObject({
      ok: false,
      code: 'INVALID_ARGUMENT',
      error: expect.stringContaining('ubuntu:22.04'),
    });
  });

  test('say which image cannot be had, and nothing of where it was looked for', async () => {
    const failure = await refused(tools(manager), 'sandbox_open', { image: 'localhost:1/no-such-image-anywhere:1' });
    expect(failure).toMatchObject({
      code: 'IMAGE_NOT_FOUND',
      error: expect.stringContaining('no-such-image-anywhere:1'),
    });
    expect(JSON.stringify(failure)).not.toMatch(/https?:|registry|engine|\d+\.\d+\.\d+/);
  });

  test('end a session, and the next call begins a new one and says so', async () => {
    const own = tools(manager);
    expect(await done(own, 'sandbox_close')).toEqual({ ok: true, closed: false, note: 'There was no open sandbox.' });
    const { sandbox_id: first, session_id } = await done(own, 'sandbox_open');
    await done(own, 'sandbox_fs_write', { path: 'kept.txt', content: 'x' });
    expect(await done(own, 'sandbox_close')).toMatchObject({ ok: true, closed: true, session_id });
    const listed = await done(own, 'sandbox_fs_list');
    expect(listed).toMatchObject({ entries: [], created: true, note: expect.stringContaining('new one') });
    expect(listed.sandbox_id).not.toBe(first);
    // Said once.
    expect(await done(own, 'sandbox_fs_list')).toEqual({ entries: [], truncated: false, total: 0 });
  });

  test('find a sandbox that went away replaced by the next call, also under its old id', async () => {
    const workflow = unique();
    const own = tools(manager, { scope: { workflow } });
    const { sandbox_id: id } = await done(own, 'sandbox_open');
    const { exec_id } = await done(own, 'sandbox_exec', { command: 'sleep 1000', stream: true });
    await manager.endScope({ workflow });
    expect(await refused(own, 'sandbox_exec_wait', { exec_id })).toMatchObject({ code: 'PROCESS_NOT_FOUND' });
    const read = await refused(own, 'sandbox_fs_read', { path: 'gone.txt', sandbox_id: id });
    expect(read).toMatchObject({ code: 'FILE_NOT_FOUND' });
    expect(read.hint).toContain('this is a new one');
    await manager.endScope({ workflow });
    expect(await done(own, 'sandbox_open')).toMatchObject({ created: true, note: expect.stringContaining('new one') });
    await manager.endScope({ workflow });
  });

  test('name a sandbox that another program removed as gone, whatever was under way in it', async () => {
    const workflow = unique();
    const own = tools(manager, { scope: { workflow } });
    await done(own, 'sandbox_open');
    const running = own.call('sandbox_exec', { command: 'echo started; sleep 1000' }, { onOutput: () => void end() });
    const end = () => manager.endScope({ workflow });
    const result = await running;
    expect(result).toMatchObject({ ok: false, hint: expect.stringContaining('next call opens a new, empty sandbox') });
    expect(['SANDBOX_LOST', 'SANDBOX_CLOSED']).toContain(result.code);
  });

  test('may be open in a bounded number at once', async () => {
    const own = tools(manager, { maxSessions: 2 });
    await done(own, 'sandbox_open');
    await done(own, 'sandbox_open', { session: 'two' });
    expect(await refused(own, 'sandbox_open', { session: 'three' })).toMatchObject({ code: 'LIMIT_EXCEEDED' });
    const { sandbox_id } = await done(own, 'sandbox_open', { session: 'two' });
    await done(own, 'sandbox_close', { sandbox_id });
    expect(await done(own, 'sandbox_open', { session: 'three' })).toMatchObject({ created: true });
  });

  test('are ended by close() where nobody else can come back, and left where others can', async () => {
    const workflow = unique();
    const shared = tools(manager, { scope: { workflow } });
    const { sandbox_id: left } = await done(shared, 'sandbox_open');
    const { sandbox_id: alone } = await done(shared, 'sandbox_open', { session: 'isolated' });
    expect(await done(shared, 'sandbox_open', { session: 'isolated' })).toMatchObject({ sandbox_id: alone });
    await shared.close();
    const ids = (await manager.list({ scope: { workflow } })).map(({ id }) => id);
    expect(ids).toEqual([left]);
    await manager.endScope({ workflow });
  });

  test('take the idle time and the options of the context', async () => {
    const own = tools(manager, {
      idleTimeoutMs: 90_000,
      env: { GREETING: 'hi' },
      workdir: '/srv',
      limits: { pids: 100 },
    });
    const { sandbox_id, workdir } = await done(own, 'sandbox_open');
    expect(workdir).toBe('/srv');
    expect(await done(own, 'sandbox_exec', { command: 'echo $GREETING; pwd' })).toMatchObject({ stdout: 'hi\n/srv\n' });
    const info = await (await manager.get(sandbox_id as string)).info();
    expect(info.limits.pids).toBe(100);
    const left = (info.expiresAt as Date).getTime() - Date.now();
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(95_000);
  });

  test('give up waiting for a sandbox when the call is aborted, without harm to others who wait', async () => {
    const own = tools(manager);
    const controller = new AbortController();
    const reason = new Error('changed my mind');
    const aborted = own.call('sandbox_exec', { command: 'true' }, { signal: controller.signal });
    const other = done(own, 'sandbox_exec', { command: 'echo here' });
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect(await other).toMatchObject({ stdout: 'here\n' });
    const alone = tools(manager);
    const only = new AbortController();
    const given = alone.call('sandbox_open', {}, { signal: only.signal });
    only.abort(reason);
    await expect(given).rejects.toBe(reason);
    expect(await done(alone, 'sandbox_open')).toMatchObject({ status: 'ready' });
    await expect(alone.call('sandbox_open', {}, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });
});

describe('without an engine', () => {
  test('every tool says that sandboxes cannot be reached, and nothing of where they would be', async () => {
    const manager = new SandboxManager({ docker: { host: 'unix:///nowhere/secret-engine.sock' } });
    const own = tools(manager, { scope: { workflow: 'wf' } });
    const inputs = {
      path: 'a',
      content: 'x',
      command: 'ls',
      exec_id: 'exec_1',
      old_text: 'a',
      new_text: 'b',
      glob: '*',
    };
    for (const { name } of own.tools) {
      const failure = await refused(own, name, inputs);
      expect(failure).toMatchObject({ code: 'ENGINE_UNAVAILABLE' });
      expect(JSON.stringify(failure)).not.toContain('nowhere');
      // For the host to log; no serialiser shows it.
      expect((failure as { cause?: Error }).cause?.message).toContain('/nowhere/secret-engine.sock');
    }
    await manager.close();
  });
});
