import { SandboxError, SandboxManager } from 'cofferdam';
import { createFakeManager, type FakeManager } from 'cofferdam/testing';
import { createToolset } from 'cofferdam/tools';
import { failure } from '../faults/failure';

describe('rules of a script', () => {
  const answers = async (manager: SandboxManager, ...commands: (string | string[])[]) => {
    const sandbox = await manager.open();
    const said: string[] = [];
    for (const command of commands) said.push((await sandbox.exec(command)).stdout);
    return said;
  };

  test('fit exactly, by expression, or as they say; the first one counts', async () => {
    await using manager = createFakeManager({
      exec: [
        { command: 'ls', stdout: 'exact' },
        { command: ['ls', '-a'], stdout: 'array' },
        { command: /^ls/g, stdout: 'expression' },
        { command: ({ cwd }) => cwd === '/tmp', stdout: 'function' },
      ],
    });
    expect(await answers(manager, 'ls', ['ls', '-a'], 'ls -a', ['ls', '-a', '-l'], 'ls -b', 'ls -b')).toEqual([
      'exact',
      'array',
      'expression',
      'expression',
      'expression',
      'expression',
    ]);
    expect((await (await manager.open()).exec('pwd', { cwd: '/tmp' })).stdout).toBe('function');
  });

  test('may hold for some calls, and others after them', async () => {
    await using manager = createFakeManager({
      exec: [
        { command: 'try', exitCode: 1, stdout: 'no', times: 2 },
        { command: 'try', stdout: 'yes', times: 1 },
      ],
    });
    expect(await answers(manager, 'try', 'try', 'try')).toEqual(['no', 'no', 'yes']);
    const error = await failure((await manager.open()).exec('try'));
    expect(error.message).toContain('used up');
  });

  test('that are missing are named with what to add, in the error and beside it', async () => {
    await using manager = createFakeManager({ exec: [{ command: 'ls', stdout: '' }] });
    const sandbox = await manager.open();
    const error = await failure(sandbox.exec(['git', 'say "hi"']));
    expect(error).toMatchObject({ code: 'UNSUPPORTED' });
    expect(error.message).toContain(
      String.raw`add { command: ["git","say \"hi\""], stdout: '…' } to "exec" of its script`,
    );
    expect((await failure(sandbox.spawn('make'))).message).toContain('add { command: "make"');
    expect((await failure(manager.run({ code: 'print(1)' }))).message).toContain('add { code: "print(1)"');
    expect(manager.unscripted).toHaveLength(3);
    expect(manager.unscripted[0]).toBe(error.message);
  });

  test('give pieces of output as chunks, and end when they say', async () => {
    await using manager = createFakeManager({
      exec: [
        {
          command: 'build',
          stdout: ['one\n', 'two\n'],
          stderr: 'warned\n',
          delayMs: 10,
          oomKilled: true,
          exitCode: 137,
        },
      ],
    });
    const build = await (await manager.open()).spawn('build');
    const chunks: unknown[] = [];
    for await (const { seq, stream, text } of build) chunks.push([seq, stream, text]);
    expect(chunks).toEqual([
      [1, 'stdout', 'one\n'],
      [2, 'stdout', 'two\n'],
      [3, 'stderr', 'warned\n'],
    ]);
    expect(await build.wait()).toMatchObject({ exitCode: 137, signal: 'SIGKILL', oomKilled: true });
  });

  test('put files into every sandbox, and objects into the store', async () => {
    await using manager = createFakeManager({
      files: { 'seed.txt': 'seed' },
      objects: { 'data/1': Buffer.from([1, 2]) },
    });
    const sandbox = await manager.open();
    expect(await sandbox.files.readText('seed.txt')).toBe('seed');
    expect(await sandbox.stage('data/1', 'in.bin')).toMatchObject({ sizeBytes: 2 });
  });
});

describe('a fake manager', () => {
  test('is a SandboxManager, and its errors are SandboxErrors', async () => {
    const manager: SandboxManager = createFakeManager();
    expect(manager).toBeInstanceOf(SandboxManager);
    const error = await (await manager.open()).files.read('missing').catch((caught) => caught);
    expect(error).toBeInstanceOf(SandboxError);
    await manager.close();
    await manager.close();
    expect((await failure(manager.open())).code).toBe('SANDBOX_CLOSED');
    expect((await failure(manager.list())).code).toBe('SANDBOX_CLOSED');
  });

  test('tells what was asked of it, by the names of the public methods', async () => {
    await using manager = createFakeManager({ exec: [{ command: /./ }] });
    const sandbox = await manager.open({ scope: { workflow: 'wf' }, image: 'python' });
    await sandbox.files.write('main.py', 'print(1)', { mode: 0o755 });
    await sandbox.exec('python main.py', { env: { A: '1' }, cwd: '/tmp', stdin: 'in' });
    await sandbox.files.list();
    await sandbox.close();
    const key = 'workflow:wf:default';
    expect(manager.calls).toMatchObject([
      { name: 'open', key: null, input: { image: 'python', scope: { workflow: 'wf' }, session: 'default' } },
      { name: 'files.write', key, input: { path: 'main.py', data: 'print(1)', mode: 0o755 } },
      { name: 'exec', key, input: { command: 'python main.py', env: { A: '1' }, cwd: '/tmp', stdin: 'in' } },
      { name: 'files.list', key, input: { path: '.', recursive: false } },
      { name: 'close', key, input: {} },
    ]);
  });

  test('keeps the image policy and the network rule, and says what it does not keep', async () => {
    await using manager = createFakeManager({}, { policy: { allowedImages: ['python', 'team/*'], network: 'deny' } });
    expect(await manager.open({ image: 'team/tool', session: 'isolated' })).toMatchObject({ image: 'team/tool' });
    expect(await manager.open({ image: 'python', session: 'isolated' })).toMatchObject({ image: 'python:3.11-slim' });
    expect((await failure(manager.open({ image: 'node' }))).code).toBe('IMAGE_NOT_ALLOWED');
    expect((await failure(manager.open({ image: 'python', network: true }))).code).toBe('POLICY_DENIED');
    expect(() => createFakeManager({}, { policy: { blockedPaths: ['/etc'] } })).toThrow(
      'does not implement policy.blockedPaths',
    );
    const sandbox = await manager.open({ image: 'python' });
    expect(await failure(sandbox.forward(80))).toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('forward()'),
    });
  });

  test('tells its logger as a real one does', async () => {
    const lines: string[] = [];
    const logger = { info: (_: unknown, message: string) => lines.push(message) };
    const manager = createFakeManager({ run: [{ code: /./ }] }, { logger });
    await manager.open();
    await manager.run({ code: '1' });
    await manager.close();
    expect(lines).toEqual(
      expect.arrayContaining(['sandbox_opened', 'sandbox_run_started', 'sandbox_run_finished', 'sandbox_closed']),
    );
  });

  test('works below the tools of an agent', async () => {
    await using manager: FakeManager = createFakeManager({
      exec: [{ command: 'npm test', stdout: '3 passed\n', exitCode: 1 }],
    });
    await using tools = createToolset(manager, { scope: { workflow: 'wf' } });
    const call = async (name: string, input: unknown) => (await tools.call(name, input)) as Record<string, unknown>;
    expect(await call('sandbox_exec', { command: 'npm test' })).toMatchObject({ stdout: '3 passed\n', exit_code: 1 });
    const written = await call('sandbox_fs_write', { path: 'a.txt', content: 'A\nB\n' });
    expect(JSON.stringify(written)).toContain('a.txt');
    expect(JSON.stringify(await call('sandbox_fs_read', { path: 'a.txt' }))).toContain('A\\nB');
    expect(await call('sandbox_exec', { command: 'rm -rf /' })).toMatchObject({ ok: false, code: 'UNSUPPORTED' });
    expect(manager.unscripted).toHaveLength(1);
    expect(manager.calls.filter(({ name }) => name === 'open').length).toBeGreaterThan(0);
  });
});
