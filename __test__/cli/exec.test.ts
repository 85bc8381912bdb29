import { randomBytes } from 'node:crypto';
import type { SandboxManager } from 'cofferdam';
import { countProcesses, describeWithEngine, IMAGES, testManager, until } from '../support';
import { cofferdam, opened, shell, start } from './program';

describeWithEngine('cofferdam exec', () => {
  const manager: SandboxManager = testManager();
  let id: string;

  beforeAll(async () => {
    id = await opened('--image', IMAGES.alpine);
  });

  test('a line for the shell: output on both streams, and the exit code', async () => {
    const ended = await cofferdam(['exec', id, 'echo "$((6 * 7))"; echo oops >&2; exit 3']);
    expect(ended).toMatchObject({ code: 3, stdout: '42\n', stderr: 'oops\n' });
  });

  test('several words are run as they are, with options of their own', async () => {
    const ended = await cofferdam(['exec', id, 'printf', '%s|', '$HOME', '-d', '--json']);
    expect(ended).toMatchObject({ code: 0, stdout: '$HOME|-d|--json|', stderr: '' });
  });

  test('by the beginning of an id', async () => {
    expect((await cofferdam(['exec', id.slice(0, 14), 'echo here'])).stdout).toBe('here\n');
    expect((await cofferdam(['exec', id.slice(4), 'echo here'])).stdout).toBe('here\n');
  });

  test('folder, variables and user', async () => {
    const words = ['exec', '--cwd', '/tmp', '-e', 'ONE=1', '-e', 'TWO', '--user', '1234', id];
    const { stdout } = await cofferdam([...words, 'pwd; echo $ONE$TWO; id -u'], { env: { TWO: '2' } });
    expect(stdout).toBe('/tmp\n12\n1234\n');
  });

  test.each([
    [['nope', '--x'], 127, 'no program "nope"'],
    [['nope'], 127, 'not found'],
    [['/etc/passwd', 'x'], 126, ''],
    [['kill -TERM $$'], 143, ''],
    [['kill -KILL $$'], 137, ''],
  ])('%j exits with %d', async (words, code, message) => {
    const ended = await cofferdam(['exec', id, ...words]);
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toMatch(/^ +at /m);
  });

  test('is exact with any bytes, in and out', async () => {
    const bytes = randomBytes(5_000_000);
    const ended = await cofferdam(['exec', '-i', id, 'cat'], { input: bytes });
    expect(ended.code).toBe(0);
    expect(ended.bytes.equals(bytes)).toBe(true);
  });

  test('all of standard error arrives, however slowly it is read', async () => {
    const { output } = await shell(
      `cofferdam exec ${id} 'head -c 300000 /dev/zero >&2' 2>&1 > /dev/null | (sleep 1; wc -c)`,
    );
    expect(output.trim()).toBe('300000');
  });

  test('has no input by default, and does not wait for ours', async () => {
    const { child, ended } = start(['exec', id, 'cat; echo over']);
    expect((await ended).stdout).toBe('over\n');
    expect(child.exitCode).toBe(0);
    // A command that does not read its input ends all the same.
    expect(await cofferdam(['exec', '-i', id, 'true'], { input: randomBytes(3_000_000) })).toMatchObject({ code: 0 });
  });

  test('output comes as it is printed', async () => {
    const { child, ended, seen } = start(['exec', id, 'echo first; until [ -e go ]; do sleep 0.05; done; echo then']);
    await until(() => seen() === 'first\n');
    expect(child.exitCode).toBeNull();
    await (await manager.get(id)).files.write('go', '');
    expect((await ended).stdout).toBe('first\nthen\n');
  });

  test('--timeout ends it, says so, and passes the signal’s code on', async () => {
    const ended = await cofferdam(['exec', '--timeout', '2s', id, 'echo begun; sleep 987']);
    expect(ended).toMatchObject({ code: 143, stdout: 'begun\n', stderr: 'cofferdam: timed out after 2s\n' });
    expect(await countProcesses(await manager.get(id), 'sleep 987')).toBe(0);
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
  ] as const)('%s ends the command with all that it started, and exits with %d', async (signal, code) => {
    const sandbox = await manager.get(id);
    const { child, ended, seen } = start(['exec', id, 'sleep 876543 & sleep 876543 & echo started; wait']);
    await until(() => seen().includes('started'));
    // And the shell, whose command line has it too.
    expect(await countProcesses(sandbox, 'sleep 876543')).toBe(3);
    child.kill(signal);
    expect(await ended).toMatchObject({ code, stderr: '' });
    expect(await countProcesses(sandbox, 'sleep 876543')).toBe(0);
  });

  test('ends the command when nobody reads any more', async () => {
    const { code, output } = await shell(
      `set -o pipefail; cofferdam exec ${id} 'while :; do echo 765y; done' | head -1`,
    );
    expect({ code, output }).toEqual({ code: 141, output: '765y\n' });
    expect(await countProcesses(await manager.get(id), 'echo 765y')).toBe(0);
  });

  test('--json gives the result', async () => {
    const ended = await cofferdam(['exec', '--json', '-i', id, 'cat; echo no >&2; exit 4'], { input: 'yes' });
    expect(ended).toMatchObject({ code: 4, stderr: '' });
    expect(JSON.parse(ended.stdout)).toMatchObject({ exitCode: 4, ok: false, stdout: 'yes', stderr: 'no\n' });
  });

  test('--detach leaves it running; ps and logs show it, also while it goes on', async () => {
    const line = 'echo one; echo two >&2; until [ -e on ]; do sleep 0.05; done; echo three';
    const started = await cofferdam(['exec', '-d', id, line]);
    const execId = started.stdout.trim();
    expect(execId).toMatch(/^exec_\w+$/);

    const { stdout: table } = await cofferdam(['ps', id]);
    expect(table).toMatch(/^EXEC +PID +STATE +AGE +COMMAND\n/);
    expect(table).toMatch(new RegExp(`^${execId} +\\d+ +running +\\d+ s +echo one; echo two`, 'm'));
    const found = JSON.parse((await cofferdam(['ps', '--json', id])).stdout);
    expect(found).toContainEqual(expect.objectContaining({ execId, exitCode: null }));
    expect((await cofferdam(['ps', '-q', id])).stdout.split('\n')).toContain(execId);

    await until(async () => (await cofferdam(['logs', id])).stderr !== '');
    expect(await cofferdam(['logs', id])).toMatchObject({ code: 0, stdout: 'one\n', stderr: 'two\n' });
    const following = start(['logs', '-f', id, execId]);
    await until(() => following.seen().includes('one') && following.seen().includes('two'));
    await (await manager.get(id)).files.write('on', '');
    expect(await following.ended).toMatchObject({ code: 0, stdout: 'one\nthree\n', stderr: 'two\n' });

    const lines = (await cofferdam(['logs', '--json', id, execId.slice(0, 20)])).stdout.trim().split('\n');
    const chunks = lines.map((text) => JSON.parse(text));
    expect(chunks.map(({ stream, text }) => [stream, text])).toEqual(
      expect.arrayContaining([
        ['stdout', 'one\n'],
        ['stderr', 'two\n'],
        ['stdout', 'three\n'],
      ]),
    );
    const last = chunks.find(({ text }) => text === 'three\n').seq;
    expect((await cofferdam(['logs', '--since', String(last - 1), id, execId])).stdout).toBe('three\n');
    expect((await cofferdam(['ps', id])).stdout).toMatch(new RegExp(`^${execId} +\\d+ +ended 0`, 'm'));
  });

  test('leaving logs -f leaves the command', async () => {
    const { stdout } = await cofferdam(['exec', '-d', '--json', id, 'echo here; exec sleep 654321']);
    const { execId, pid } = JSON.parse(stdout);
    expect(pid).toBeGreaterThan(1);
    const following = start(['logs', '-f', id, execId]);
    await until(() => following.seen().includes('here'));
    following.child.kill('SIGINT');
    expect((await following.ended).code).toBe(130);
    const sandbox = await manager.get(id);
    expect(await countProcesses(sandbox, 'sleep 654321')).toBe(1);
    await (await sandbox.process(execId)).kill();
  });

  test('bytes that are no text are exact in logs, in both forms', async () => {
    const { stdout } = await cofferdam(['exec', '-d', id, "printf '\\377\\000\\376'"]);
    const execId = stdout.trim();
    expect((await cofferdam(['logs', '-f', id, execId])).bytes).toEqual(Buffer.from([0xff, 0, 0xfe]));
    const line = JSON.parse((await cofferdam(['logs', '--json', id, execId])).stdout);
    expect(Buffer.from(line.base64, 'base64')).toEqual(Buffer.from([0xff, 0, 0xfe]));
  });

  test.each([
    [['exec', 'nobody-has-this', 'ls'], 1, /there is no sandbox "nobody-has-this"\. Try: cofferdam ls/],
    [['logs', 'ID', 'exec_ffff'], 1, /there is no command "exec_ffff" in it\. Try: cofferdam ps/],
    [['exec', 'ID', '--cwd', '/nowhere', 'ls'], 1, /nowhere/],
    [['exec', '-d', '-i', 'ID', 'cat'], 2, /--stdin is not for --detach/],
    [['exec', '--timeout', '5', 'ID', 'ls'], 2, /--timeout must be a time/],
    [['exec', 'ID'], 2, /<command> is missing/],
    [['exec'], 2, /<sandbox> is missing/],
    [['logs', '--since', 'x', 'ID'], 2, /--since must be a whole number/],
  ])('%j is said in words', async (words, code, message) => {
    const ended = await cofferdam(words.map((word) => (word === 'ID' ? id : word)));
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr).not.toMatch(/^ +at /m);
  });
});
