import type { ToolOutput } from 'cofferdam/tools';
import { countProcesses, describeWithEngine, testManager, until } from '../support';
import { done, refused, tools } from './toolbox';

describeWithEngine('sandbox_exec', () => {
  const manager = testManager();
  const own = tools(manager);
  const sandbox = async () => manager.get((await done(own, 'sandbox_open')).sandbox_id as string);

  test('answers with everything a model may look for', async () => {
    const result = await done(own, 'sandbox_exec', { command: 'echo out; echo err >&2; exit 3' });
    expect(result).toEqual({
      exec_id: expect.stringMatching(/^exec_/),
      status: 'completed',
      exit_code: 3,
      stdout: 'out\n',
      stderr: 'err\n',
      duration_ms: expect.any(Number),
      timed_out: false,
      oom_killed: false,
      truncated: false,
    });
  });

  test.each([
    ['a string, through the shell', { command: 'echo $((6 * 7)) | tr 4 5' }, '52\n'],
    ['a list, as it is', { command: ['echo', '$HOME', 'a b'] }, '$HOME a b\n'],
    ['a list under its other name', { cmd: ['echo', '$HOME'] }, '$HOME\n'],
    ['a string under that name', { cmd: 'echo $((1 + 1))' }, '2\n'],
    ['a folder', { command: 'pwd', cwd: '/tmp' }, '/tmp\n'],
    ['a folder under its other name', { command: 'pwd', workdir: '/usr' }, '/usr\n'],
    ['an environment', { command: 'echo $A', env: { A: 'h€llo' } }, 'h€llo\n'],
    ['null for what it has nothing to say about', { command: 'echo x', cwd: null, env: null, stream: null }, 'x\n'],
  ])('takes %s', async (_, input, stdout) => {
    expect(await done(own, 'sandbox_exec', input)).toMatchObject({ exit_code: 0, stdout });
  });

  test('keeps head and tail of long output, and sandbox_exec_read gives the rest', async () => {
    const { exec_id, stdout, stderr, note, truncated } = await done(own, 'sandbox_exec', {
      command: 'seq 100000; echo short >&2',
    });
    expect(truncated).toBe(true);
    expect(Buffer.byteLength(stdout as string)).toBeLessThanOrEqual(64 * 1024);
    expect(stdout).toMatch(/^1\n2\n3\n[\d\n]*\n\[… \d+ bytes left out …\]\n[\d\n]*\n99999\n100000\n$/);
    expect(stderr).toBe('short\n');
    expect(note).toContain(exec_id as string);

    let text = '';
    let since = 0;
    for (;;) {
      const page = await done(own, 'sandbox_exec_read', { exec_id, since_seq: since });
      const chunks = page.chunks as { seq: number; stream: string; text: string }[];
      expect(JSON.stringify(page).length).toBeLessThan(100_000);
      text += chunks.map((chunk) => (chunk.stream === 'stdout' ? chunk.text : '')).join('');
      since = page.next_seq as number;
      if (page.done) break;
    }
    expect(text).toBe(Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join(''));
  });

  test('keeps to the bytes of the context, at characters, and says what is lost for good', async () => {
    const small = tools(manager, { maxResultBytes: 300 });
    const { stdout, truncated } = await done(small, 'sandbox_exec', {
      command: 'for i in $(seq 500); do printf 😀é€; done',
    });
    expect(truncated).toBe(true);
    expect(Buffer.byteLength(stdout as string)).toBeLessThanOrEqual(300);
    expect(stdout).toMatch(/^(😀é€)*(😀é?)?\n\[… \d+ bytes left out …\]\n(é€|€)?(😀é€)*$/);
    const { note } = await done(small, 'sandbox_exec', { command: 'seq 1000000' });
    expect(note).toContain('output in a file');
  });

  test('ends a command when its time is up, with what it printed, and says so', async () => {
    const result = await done(own, 'sandbox_exec', { command: 'echo before; sleep 3001', timeout_seconds: 2 });
    expect(result).toMatchObject({
      timed_out: true,
      stdout: 'before\n',
      note: expect.stringContaining('ran out of time'),
    });
    expect(await countProcesses(await sandbox(), 'sleep 3001')).toBe(0);
    const hurried = tools(manager, { commandTimeoutMs: 300 });
    expect(await done(hurried, 'sandbox_exec', { command: 'sleep 1000' })).toMatchObject({ timed_out: true });
  });

  test('tells of output while it runs, and is not ended by a listener that throws', async () => {
    const heard: ToolOutput[] = [];
    const onOutput = (output: ToolOutput) => void heard.push(output);
    // The command ends only when the first line was heard.
    const first = own.call(
      'sandbox_exec',
      { command: 'echo one; until [ -e go ]; do sleep 0.05; done; echo two >&2' },
      {
        onOutput: (output) => {
          onOutput(output);
          if (heard.length === 1) void own.call('sandbox_fs_write', { path: 'go', content: '' });
        },
      },
    );
    expect(await first).toMatchObject({ exit_code: 0, stdout: 'one\n', stderr: 'two\n' });
    expect(heard).toEqual([
      { stream: 'stdout', text: 'one\n' },
      { stream: 'stderr', text: 'two\n' },
    ]);
    const onThrow = jest.fn(() => {
      void own.call('sandbox_fs_write', { path: 'go on', content: '' });
      throw new Error('a bug of the host');
    });
    const loud = own.call(
      'sandbox_exec',
      { command: 'echo 1; until [ -e "go on" ]; do sleep 0.05; done; echo 2' },
      { onOutput: onThrow },
    );
    expect(await loud).toMatchObject({ exit_code: 0, stdout: '1\n2\n' });
    expect(onThrow).toHaveBeenCalledTimes(1);
  });

  test.each([['at once'], ['streaming']])(
    'ends the whole tree when aborted, %s, and rejects with the reason',
    async (how) => {
      const box = await sandbox();
      const controller = new AbortController();
      const reason = new Error('the user pressed stop');
      await own.call('sandbox_fs_delete', { path: 'running' });
      const running = own.call(
        'sandbox_exec',
        { command: '(setsid sleep 3002 &); touch running; sleep 3002' },
        { signal: controller.signal, ...(how === 'streaming' && { onOutput: () => {} }) },
      );
      const waiting = (async () => {
        await until(() => box.files.exists('running'));
        controller.abort(reason);
      })();
      await expect(running).rejects.toBe(reason);
      await waiting;
      expect(await countProcesses(box, 'sleep 3002')).toBe(0);
    },
  );

  test('leaves a command running with stream, to be read and waited for', async () => {
    const started = await done(own, 'sandbox_exec', {
      command: 'echo begun; cat; until [ -e stop ]; do sleep 0.05; done; echo over; exit 4',
      stream: true,
    });
    expect(started).toEqual({ exec_id: expect.stringMatching(/^exec_/), status: 'running' });
    const { exec_id } = started;
    const first = await done(own, 'sandbox_exec_read', { exec_id, wait_seconds: 30 });
    expect(first).toEqual({
      chunks: [{ seq: 1, stream: 'stdout', text: 'begun\n' }],
      next_seq: 1,
      done: false,
      lost_bytes: 0,
    });
    expect(await done(own, 'sandbox_exec_wait', { exec_id, timeout_seconds: 0.05 })).toMatchObject({
      done: false,
      status: 'running',
    });
    expect(await done(own, 'sandbox_exec_read', { exec_id, since_seq: 1 })).toMatchObject({
      chunks: [],
      next_seq: 1,
      done: false,
    });
    await done(own, 'sandbox_fs_write', { path: 'stop', content: '' });
    const ended = await done(own, 'sandbox_exec_wait', { exec_id });
    expect(ended).toMatchObject({ done: true, status: 'completed', exit_code: 4, stdout: 'begun\nover\n' });
    expect(await done(own, 'sandbox_exec_read', { exec_id, since_seq: 1, max_chunks: 1 })).toMatchObject({
      chunks: [{ seq: 2, stream: 'stdout', text: 'over\n' }],
      done: true,
    });
  });

  test('is found by its exec_id alone, in whichever session it runs', async () => {
    const { sandbox_id } = await done(own, 'sandbox_open', { session: 'second' });
    const { exec_id } = await done(own, 'sandbox_exec', { command: 'echo there', stream: true, sandbox_id });
    expect(await done(own, 'sandbox_exec_wait', { exec_id })).toMatchObject({ stdout: 'there\n' });
    await done(own, 'sandbox_close', { sandbox_id });
    expect(await refused(own, 'sandbox_exec_read', { exec_id })).toMatchObject({ code: 'PROCESS_NOT_FOUND' });
  });

  test('gives up a wait and a read when aborted, and leaves the command running', async () => {
    const { exec_id } = await done(own, 'sandbox_exec', { command: 'sleep 3003', stream: true });
    const reason = new Error('enough');
    for (const [name, input] of [
      ['sandbox_exec_wait', { exec_id }],
      ['sandbox_exec_read', { exec_id, wait_seconds: 60 }],
    ] as const) {
      const controller = new AbortController();
      const waiting = own.call(name, input, { signal: controller.signal });
      setTimeout(() => controller.abort(reason), 50);
      await expect(waiting).rejects.toBe(reason);
    }
    expect(await countProcesses(await sandbox(), 'sleep 3003')).toBe(1);
    await (await (await sandbox()).process(exec_id as string)).kill();
  });

  test.each([
    ['no command', {}, 'INVALID_ARGUMENT', 'command'],
    ['an empty command', { command: '' }, 'INVALID_ARGUMENT', 'command'],
    ['an empty list', { cmd: [] }, 'INVALID_ARGUMENT', 'command'],
    ['two that differ', { command: 'ls', cmd: ['ls'] }, 'INVALID_ARGUMENT', 'cmd'],
    ['a missing program', { command: ['no-such-program'] }, 'COMMAND_NOT_FOUND', 'no-such-program'],
    ['a missing folder', { command: 'ls', cwd: '/no/such' }, 'FILE_NOT_FOUND', '/no/such'],
    ['a bad variable', { command: 'ls', env: { 'A=B': 'x' } }, 'INVALID_ARGUMENT', 'A=B'],
    ['a NUL', { command: 'echo \0' }, 'INVALID_ARGUMENT', 'NUL'],
    ['half of a character', { command: 'echo \ud800' }, 'INVALID_ARGUMENT', 'Unicode'],
  ])('says what is wrong with %s', async (_, input, code, word) => {
    const failure = await refused(own, 'sandbox_exec', input);
    expect(failure.code).toBe(code);
    expect(failure.error).toContain(word);
  });
});
