import { describeWithEngine, testManager, until } from '../support';
import { done, refused, tools } from './toolbox';

describeWithEngine('sandbox_run', () => {
  const manager = testManager();
  const own = tools(manager, { mode: 'compute', image: undefined });
  const run = (input: object) => done(own, 'sandbox_run', input);

  test('answers with everything a model may look for', async () => {
    expect(await run({ code: 'import sys; print(6 * 7); print("e", file=sys.stderr)' })).toEqual({
      ok: true,
      runtime: 'python',
      exit_code: 0,
      duration_ms: expect.any(Number),
      stdout: '42\n',
      stderr: 'e\n',
      timed_out: false,
      oom_killed: false,
      truncated: false,
      artifacts: [],
      limits: { timeout_seconds: 120, max_stdout_bytes: 65_536 },
    });
  });

  test.each([
    ['python', { runtime: 'python', code: 'import sys; print(sys.argv[1:])' }, "['a', 'b c']\n"],
    ['node', { runtime: 'node', code: 'console.log(process.argv.slice(2))' }, "[ 'a', 'b c' ]\n"],
    ['bash', { runtime: 'bash', code: 'printf "%s\\n" "$@"' }, 'a\nb c\n'],
  ])('runs %s with arguments', async (runtime, input, stdout) => {
    expect(await run({ ...input, args: ['a', 'b c'] })).toMatchObject({ ok: true, runtime, stdout });
  });

  test('gives the program files and variables, and brings artifacts back', async () => {
    const result = await run({
      runtime: 'bash',
      code: 'mkdir out; tr a-z A-Z < in/data.txt > out/up.txt; printf "\\0\\377" > out/bin; head -c 100000 /dev/zero > out/big; echo $WHO',
      files: { 'in/data.txt': 'shout' },
      env: { WHO: 'me' },
      artifacts: ['out/*'],
    });
    expect(result).toMatchObject({ ok: true, stdout: 'me\n' });
    expect(result.artifacts).toEqual([
      { path: 'out/big', size_bytes: 100_000, omitted: 'too large' },
      { path: 'out/bin', size_bytes: 2, content_base64: 'AP8=' },
      { path: 'out/up.txt', size_bytes: 5, content_base64: Buffer.from('SHOUT').toString('base64') },
    ]);
  });

  test('gives the content of artifacts only as long as all of it is not too much', async () => {
    const code = 'for i in 1 2 3 4 5 6; do head -c 60000 /dev/zero > $i.bin; done';
    const { artifacts } = await run({ runtime: 'bash', code, artifacts: ['*.bin'] });
    const omitted = (artifacts as { omitted?: string }[]).map((artifact) => artifact.omitted);
    expect(omitted).toEqual([undefined, undefined, undefined, undefined, 'too large', 'too large']);
  });

  test('keeps nothing for the next run', async () => {
    await run({ runtime: 'bash', code: 'echo x > left; echo x > /tmp/left' });
    expect(await run({ runtime: 'bash', code: 'ls; ls /tmp' })).toMatchObject({ stdout: 'main.sh\n' });
  });

  test('tells of a program that fails, and of one that takes too long', async () => {
    const failed = await own.call('sandbox_run', { code: 'raise SystemExit(3)' });
    expect(failed).toMatchObject({ ok: false, exit_code: 3, timed_out: false });
    expect(failed).not.toHaveProperty('code');
    const slow = await own.call('sandbox_run', {
      code: 'import time; print("begun", flush=True); time.sleep(1000)',
      timeout_seconds: 4,
    });
    expect(slow).toMatchObject({ ok: false, timed_out: true, stdout: 'begun\n', limits: { timeout_seconds: 4 } });
    expect(slow.error).toContain('timed out after 4 s');
  });

  test('keeps head and tail of long output', async () => {
    const result = await run({ runtime: 'bash', code: 'seq 100000' });
    expect(result).toMatchObject({ truncated: true, note: expect.stringContaining('artifacts') });
    expect(result.stdout).toMatch(/^1\n2\n[\d\n]*\n\[… \d+ bytes left out …\]\n[\d\n]*\n100000\n$/);
    expect(Buffer.byteLength(result.stdout as string)).toBeLessThanOrEqual(65_536);
  });

  test('takes what the context says where the model says nothing', async () => {
    const bound = tools(manager, {
      mode: 'compute',
      runtime: 'bash',
      image: 'alpine:3.19',
      env: { FROM: 'context', BOTH: 'context' },
      commandTimeoutMs: 20_000,
      maxResultBytes: 500,
      maxFiles: 1,
      maxFileBytes: 10,
      limits: { pids: 50 },
    });
    const result = await done(bound, 'sandbox_run', {
      code: 'echo $FROM $BOTH; readlink -f /bin/ls; cat /sys/fs/cgroup/pids/pids.max || cat /sys/fs/cgroup/pids.max',
      env: { BOTH: 'model' },
      files: { a: '0123456789' },
    });
    expect(result).toMatchObject({ runtime: 'bash', limits: { timeout_seconds: 20, max_stdout_bytes: 500 } });
    expect(result.stdout).toContain('context model\n/bin/busybox\n50\n');
    // An image is for the context's own runtime.
    expect(await done(bound, 'sandbox_run', { code: 'print(1)', runtime: 'python' })).toMatchObject({ stdout: '1\n' });
    const inputs = [{ files: { a: '', b: '' } }, { files: { a: '0123456789a' } }];
    for (const input of inputs) {
      const failure = await refused(bound, 'sandbox_run', { code: 'true', ...input });
      expect(failure.code).toBe('LIMIT_EXCEEDED');
    }
  });

  test.each([
    ['no code', {}, 'INVALID_ARGUMENT', 'code'],
    ['empty code', { code: ' ' }, 'INVALID_ARGUMENT', 'code'],
    ['an unknown runtime', { code: '1', runtime: 'cobol' }, 'INVALID_ARGUMENT', 'runtime'],
    ['files that are no texts', { code: '1', files: { a: 7 } }, 'INVALID_ARGUMENT', 'files.a'],
    ['a file in the place of the code', { code: '1', files: { 'main.py': 'x' } }, 'INVALID_ARGUMENT', 'main.py'],
    ['artifacts that lead out', { code: '1', artifacts: ['../etc/*'] }, 'INVALID_ARGUMENT', 'artifacts'],
    ['NUL in a path', { code: '1', files: { 'a\0b': 'x' } }, 'INVALID_ARGUMENT', 'NUL'],
    ['a bad variable', { code: '1', env: { 'A=B': 'x' } }, 'INVALID_ARGUMENT', 'A=B'],
  ])('says what is wrong with %s', async (_, input, code, word) => {
    const failure = await refused(own, 'sandbox_run', input);
    expect(failure.code).toBe(code);
    expect(failure.error).toContain(word);
  });

  test('ends with its sandbox when the call is aborted', async () => {
    const controller = new AbortController();
    const reason = new Error('stop');
    const events = manager.events();
    const running = own.call('sandbox_run', { runtime: 'bash', code: 'sleep 1000' }, { signal: controller.signal });
    let id: string | undefined;
    for await (const { type, sandboxId } of events) {
      id = sandboxId;
      if (type === 'exec-started') break;
    }
    controller.abort(reason);
    await expect(running).rejects.toBe(reason);
    expect(id).toMatch(/^sbx_/);
    await until(async () => !(await manager.list()).some((info) => info.id === id));
  });
});
