import { type Command, type ExecOptions, SandboxError } from 'cofferdam';
import { classes, countProcesses, describeWithEngine, IMAGES, testManager } from '../support';

describeWithEngine.each(classes('debian', 'alpine'))('exec on the %s class', (name) => {
  const manager = testManager();
  const open = () => manager.open({ image: IMAGES[name] });

  test('resolves with the exit code and both streams of a command that fails', async () => {
    const result = await (await open()).exec('echo out; echo err >&2; exit 3');
    expect(result).toMatchObject({ exitCode: 3, ok: false, signal: null, stdout: 'out\n', stderr: 'err\n' });
    expect(result).toMatchObject({ timedOut: false, oomKilled: false, truncated: { stdout: false, stderr: false } });
    expect(result.execId).toMatch(/^exec_/);
    expect(result.durationMs).toBeGreaterThan(0);
  });

  test('rejects on failure when asked: with the command, how it ended, the end of stderr and the whole result', async () => {
    const sandbox = await open();
    const failing = async (command: Command, options: ExecOptions = {}) => {
      const error = await sandbox.exec(command, { ...options, reject: true }).catch((caught) => caught);
      expect(error).toBeInstanceOf(SandboxError);
      expect(error.code).toBe('COMMAND_FAILED');
      return error as SandboxError;
    };
    const exited = await failing('echo out; seq 1 20 >&2; exit 3');
    expect(exited.message).toMatch(
      /^command "echo out; seq 1 20 >&2; exit 3" exited with code 3; .*stderr:\n11\n(\d+\n)*20$/,
    );
    expect(exited.details).toMatchObject({ exitCode: 3, signal: null, stdout: 'out\n', timedOut: false, ok: false });
    expect(exited.details.execId).toMatch(/^exec_/);
    expect(exited.stack?.split('\n').some((line) => line.includes('exec.test.ts'))).toBe(true);
    expect((await failing('kill -9 $$')).message).toBe('command "kill -9 $$" was killed by SIGKILL');
    const long = await failing(['sh', '-c', `false # ${'x'.repeat(1000)}`]);
    expect(long.message).toMatch(/^command \["sh","-c","false # x+… exited with code 1$/);
    expect(long.message.length).toBeLessThan(300);
    const streamed = await failing('echo here; exit 4', { onStdout: async () => {} });
    expect(streamed.details).toMatchObject({ exitCode: 4, stdout: 'here\n' });
    const late = await failing('trap "exit 0" TERM; echo up >&2; while :; do sleep 0.05; done', { timeoutMs: 1_000 });
    expect(late.message).toMatch(/timed out after \d+ ms; the end of its stderr:\nup/);
    expect(late.details).toMatchObject({ timedOut: true });
  });

  test('asked to reject, still resolves with a command that succeeds, and takes nothing but true or false', async () => {
    const sandbox = await open();
    expect(await sandbox.exec('echo fine', { reject: true })).toMatchObject({ ok: true, stdout: 'fine\n' });
    expect(await sandbox.exec('exit 3', { reject: false })).toMatchObject({ exitCode: 3 });
    const wrong = sandbox.exec('true', { reject: 'yes' as never });
    await expect(wrong).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('runs an array as it is, without a shell', async () => {
    const result = await (await open()).exec(['printf', '%s|', '$HOME', 'a b', '*']);
    expect(result).toMatchObject({ ok: true, stdout: '$HOME|a b|*|' });
  });

  test('rejects with COMMAND_NOT_FOUND for a missing program, and leaves 127 to the shell', async () => {
    const sandbox = await open();
    await expect(sandbox.exec(['nope'])).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND' });
    await expect(sandbox.exec(['/no/such/file'])).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND' });
    expect((await sandbox.exec('nope')).exitCode).toBe(127);
  });

  test('says 128+n and the name when a signal ended the command', async () => {
    expect(await (await open()).exec('kill -9 $$')).toMatchObject({
      exitCode: 137,
      signal: 'SIGKILL',
      timedOut: false,
    });
  });

  test('gives the command cwd, env and stdin, and an empty closed input without', async () => {
    const sandbox = await open();
    const options = { cwd: '/tmp', env: { GREETING: 'h€llo' }, stdin: 'in\n' };
    expect((await sandbox.exec('pwd; echo $GREETING; cat', options)).stdout).toBe('/tmp\nh€llo\nin\n');
    expect((await sandbox.exec('cat; echo end')).stdout).toBe('end\n');
    expect((await sandbox.exec('pwd')).stdout).toBe('/workspace\n');
  });

  test('runs as another user, by number and by name', async () => {
    const sandbox = await open();
    expect((await sandbox.exec('id -u; id -g', { user: '1234:4321' })).stdout).toBe('1234\n4321\n');
    expect((await sandbox.exec('id -un', { user: 'nobody' })).stdout).toBe('nobody\n');
  });

  test('ends the whole tree when the time is up, with the output so far', async () => {
    const sandbox = await open();
    const started = Date.now();
    const result = await sandbox.exec('echo before; sleep 1000 & (setsid sleep 1000 &) ; sleep 1000', {
      timeoutMs: 2_500,
    });
    expect(Date.now() - started).toBeLessThan(20_000);
    expect(result).toMatchObject({ timedOut: true, ok: false, stdout: 'before\n' });
    expect([137, 143]).toContain(result.exitCode);
    expect(await countProcesses(sandbox, 'sleep 1000')).toBe(0);
  });

  test('kills what ignores TERM after the grace period', async () => {
    const sandbox = await open();
    const result = await sandbox.exec('trap "" TERM; while :; do sleep 0.1; done', {
      timeoutMs: 2_500,
      killGraceMs: 200,
    });
    expect(result).toMatchObject({ timedOut: true, exitCode: 137, signal: 'SIGKILL' });
  });

  test('rejects with the signal’s own reason when aborted, and leaves nothing running', async () => {
    const sandbox = await open();
    const controller = new AbortController();
    const running = sandbox.exec('sleep 2000', { signal: controller.signal });
    const reason = new Error('changed my mind');
    setTimeout(() => controller.abort(reason), 100);
    await expect(running).rejects.toBe(reason);
    expect(await countProcesses(sandbox, 'sleep 2000')).toBe(0);
    await expect(sandbox.exec('true', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  test('keeps head and tail of long output within the limit', async () => {
    const result = await (await open()).exec('echo first; seq 1 100000; echo last; echo e >&2', {
      maxOutputBytes: 4096,
    });
    expect(result.truncated).toEqual({ stdout: true, stderr: false });
    expect(Buffer.byteLength(result.stdout)).toBeLessThanOrEqual(4096);
    expect(result.stdout).toMatch(/^first\n1\n2\n/);
    expect(result.stdout).toMatch(/\n100000\nlast\n$/);
    expect(result.stdout).toContain('bytes left out');
    expect(result.stderr).toBe('e\n');
  });

  test('keeps a mebibyte of each stream whole', async () => {
    const result = await (await open()).exec('head -c 1048576 /dev/zero; head -c 1048576 /dev/zero >&2');
    expect([result.stdout.length, result.stderr.length]).toEqual([1_048_576, 1_048_576]);
    expect(result.truncated).toEqual({ stdout: false, stderr: false });
  });

  test('tells of output while the command runs, in order, never inside a character', async () => {
    const pieces: string[] = [];
    const errors: string[] = [];
    const script = 'printf "\\342\\202"; sleep 0.1; printf "\\254"; echo err >&2; cat';
    const result = await (await open()).exec(script, {
      stdin: ' end',
      onStdout: (text) => pieces.push(text),
      onStderr: (text) => errors.push(text),
    });
    expect(pieces.join('')).toBe('€ end');
    expect(pieces.join('')).not.toContain('\ufffd');
    expect(errors.join('')).toBe('err\n');
    expect(result).toMatchObject({ ok: true, stdout: '€ end', stderr: 'err\n' });
  });

  test('does not wait for what a command leaves in the background', async () => {
    const sandbox = await open();
    const started = Date.now();
    const { execId } = await sandbox.exec('sleep 3000 & echo started');
    expect(Date.now() - started).toBeLessThan(20_000);
    expect(await countProcesses(sandbox, 'sleep 3000')).toBe(1);
    await (await sandbox.process(execId)).kill();
    expect(await countProcesses(sandbox, 'sleep 3000')).toBe(0);
  });

  test('reports the error where it was called', async () => {
    const sandbox = await open();
    const failing = async () => sandbox.exec(['nope']);
    const error = await failing().catch((caught) => caught);
    expect(error).toBeInstanceOf(SandboxError);
    expect(error.stack.split('\n')[1]).toContain('exec.test.ts');
  });

  test('200 commands at once all finish while two files of 50 MB move both ways', async () => {
    const sandbox = await open();
    const big = Buffer.alloc(50_000_000);
    for (let index = 0; index < big.length; index += 4) big.writeUInt32LE((index * 2654435761) >>> 0, index);
    await sandbox.files.write('/tmp/down.bin', big);
    const commands = Array.from({ length: 200 }, (_, index) => sandbox.exec(`echo ${index}`));
    const [written, read, ...results] = await Promise.all([
      sandbox.files.write('/tmp/up.bin', big),
      sandbox.files.read('/tmp/down.bin', { maxBytes: big.length }),
      ...commands,
    ]);
    expect(results.map(({ stdout }) => stdout)).toEqual(results.map((_, index) => `${index}\n`));
    expect(written.sizeBytes).toBe(big.length);
    expect(big.equals(read.bytes)).toBe(true);
    expect((await sandbox.exec('cmp /tmp/up.bin /tmp/down.bin')).exitCode).toBe(0);
  });
});

describeWithEngine('memory', () => {
  test('a command that takes more than there is is killed, and the sandbox lives on', async () => {
    const sandbox = await testManager().open({ image: IMAGES.debian, limits: { memoryMb: 64 } });
    const result = await sandbox.exec('tail /dev/zero');
    expect(result).toMatchObject({ exitCode: 137, oomKilled: true });
    expect((await sandbox.exec('kill -9 $$')).oomKilled).toBe(false);
  });
});
