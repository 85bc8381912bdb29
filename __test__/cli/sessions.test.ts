import { spawnSync } from 'node:child_process';
import { userInfo } from 'node:os';
import path from 'node:path';
import { describeWithEngine, IMAGES, testManager, unique } from '../support';
import { cofferdam, MAIN, opened, scope, shell } from './program';

describeWithEngine('cofferdam open, ls and close', () => {
  const manager = testManager();

  test('opens a session, finds it again, lists and closes it', async () => {
    const { words, workflow } = scope();
    const open = ['open', '--image', IMAGES.alpine, '--session', 'build', ...words];
    const { stdout, stderr, code } = await cofferdam(open);
    const id = stdout.trim();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(id).toMatch(/^sbx_\w+$/);
    expect((await cofferdam(open)).stdout).toBe(stdout);

    const { stdout: table } = await cofferdam(['ls', ...words]);
    const [headings, row, ...rest] = table.trim().split('\n');
    expect(headings).toMatch(/^ID +STATE +AGE +IMAGE +SESSION$/);
    expect(row).toMatch(new RegExp(`^${id} +running +\\d+ s +\\S+ +workflow:${workflow}:build$`));
    expect(rest).toEqual([]);
    expect((await cofferdam(['ls'])).stdout).toContain(id);
    expect(JSON.parse((await cofferdam(['ls', '--json', ...words])).stdout)).toMatchObject([
      { id, key: `workflow:${workflow}:build`, state: 'running', workdir: '/workspace', network: false },
    ]);
    expect((await cofferdam(['ls', '-q', ...words])).stdout).toBe(stdout);

    expect(await cofferdam(['close', `workflow:${workflow}:build`])).toMatchObject({ code: 0, stdout, stderr: '' });
    expect((await cofferdam(['ls', '-q', ...words])).stdout).toBe('');
  });

  test('a session of one’s own goes by its name', async () => {
    const name = unique('cli');
    const { stdout } = await cofferdam(['open', '-s', name, '-i', IMAGES.alpine]);
    const { key } = await (await manager.get(stdout.trim())).info();
    expect(key).toBe(`user:${userInfo().username}:${name}`);
    expect((await cofferdam(['exec', name, 'echo hello'])).stdout).toBe('hello\n');
    expect((await cofferdam(['close', name])).stdout).toBe(stdout);
  });

  test('a session of one’s own goes by its name, whatever is in it', async () => {
    const name = `${unique('cli')}:50%`;
    const { stdout } = await cofferdam(['open', '-s', name, '-i', IMAGES.alpine]);
    expect((await cofferdam(['close', name])).stdout).toBe(stdout);
  });

  (process.getuid?.() === 0 ? test : test.skip)('a user whom the system has no name for has one all the same', () => {
    const source = `console.log(require(${JSON.stringify(path.resolve(MAIN, '../user-name.js'))}).userName())`;
    const asked = (env: NodeJS.ProcessEnv) =>
      spawnSync(process.execPath, ['-e', source], { uid: 54_321, env }).stdout.toString().trim();
    expect(asked({ USER: 'somebody' })).toBe('somebody');
    expect(asked({})).toBe('54321');
  });

  test('is what the options say, and --json tells', async () => {
    const { words } = scope();
    const options = ['--workdir', '/srv/x', '--label', 'team=blue', '--memory', '128', '--cpus', '0.5', '--pids', '60'];
    const more = ['--env', 'ONE=1', '--user', '1234', '--init', 'echo made > init.txt', '--pull', 'never', '--json'];
    const open = ['open', '-i', IMAGES.alpine, ...words, ...options, ...more];
    const first = JSON.parse((await cofferdam(open)).stdout);
    expect(first).toMatchObject({
      created: true,
      workdir: '/srv/x',
      labels: { team: 'blue' },
      limits: { memoryMb: 128, cpus: 0.5, pids: 60 },
    });
    expect(JSON.parse((await cofferdam(open)).stdout)).toMatchObject({ id: first.id, created: false });
    const { stdout } = await cofferdam(['exec', first.id, 'pwd; cat init.txt; echo $ONE; id -u']);
    expect(stdout).toBe('/srv/x\nmade\n1\n1234\n');
  });

  test('stays without any program for as long as --keep says, and ends then', async () => {
    const { words } = scope();
    const shortly = (
      await cofferdam(['open', '-i', IMAGES.alpine, '-s', 'short', '--keep', '1s', ...words])
    ).stdout.trim();
    const longer = (await cofferdam(['open', '-i', IMAGES.alpine, '-s', 'long', ...words])).stdout.trim();
    for (;;) {
      const ids = (await cofferdam(['ls', '-q', ...words])).stdout.trim().split('\n');
      expect(ids).toContain(longer);
      if (!ids.includes(shortly)) break;
    }
    const { expiresAt } = await (await manager.get(longer)).info();
    expect((expiresAt?.getTime() ?? 0) - Date.now()).toBeGreaterThan(20 * 60_000);
  });

  test('--keep and --lifetime of one that is open put its end off', async () => {
    const { words } = scope();
    await cofferdam(['open', '-i', IMAGES.alpine, '--keep', '10m', ...words]);
    const again = await cofferdam(['open', '--keep', '3h', '--lifetime', '9h', '--json', ...words]);
    const { expiresAt, created } = JSON.parse(again.stdout);
    expect(created).toBe(false);
    expect(Date.parse(expiresAt) - Date.now()).toBeGreaterThan(2.9 * 3_600_000);
    expect(again.stderr).toContain('it was open already');
  });

  test('a persistent workspace outlives close, until --data', async () => {
    const { words } = scope();
    const open = ['open', '-i', IMAGES.alpine, '--persist', ...words];
    const first = (await cofferdam(open)).stdout.trim();
    await cofferdam(['exec', first, 'echo kept > a.txt']);
    await cofferdam(['close', first]);
    const second = (await cofferdam(open)).stdout.trim();
    expect((await cofferdam(['exec', second, 'cat a.txt'])).stdout).toBe('kept\n');
    expect(await cofferdam(['close', '--data', second])).toMatchObject({ code: 0, stdout: `${second}\n` });
    const third = (await cofferdam(open)).stdout.trim();
    expect((await cofferdam(['exec', third, 'ls'])).stdout).toBe('');
    await cofferdam(['close', '--data', third]);
  });

  test('ls shows what is stopped only with --all, and close takes it away', async () => {
    const { words } = scope();
    const id = (await cofferdam(['open', '-i', IMAGES.alpine, '--persist', ...words])).stdout.trim();
    await (await manager.get(id)).stop();
    expect((await cofferdam(['ls', '-q', ...words])).stdout).toBe('');
    expect((await cofferdam(['ls', '--all', ...words])).stdout).toMatch(new RegExp(`^${id} +stopped `, 'm'));
    await cofferdam(['close', '--data', id]);
    expect((await cofferdam(['ls', '-aq', ...words])).stdout).toBe('');
  });

  test('close takes several, or all of a scope, and tells of each', async () => {
    const { words } = scope();
    const open = async (name: string) =>
      (await cofferdam(['open', '-i', IMAGES.alpine, '-s', name, ...words])).stdout.trim();
    const [a, b, c] = [await open('a'), await open('b'), await open('c')];
    const some = await cofferdam(['close', a, 'nobody-has-this', b]);
    expect(some).toMatchObject({ code: 1, stdout: `${a}\n${b}\n` });
    expect(some.stderr).toContain('there is no sandbox "nobody-has-this"');
    const all = await cofferdam(['close', '--all', '--json', ...words]);
    expect(JSON.parse(all.stdout)).toEqual({ closed: [c] });
    expect(await cofferdam(['close', '--all', ...words])).toMatchObject({ code: 0, stdout: '' });
  });

  test('prune says what it would do, and does nothing to the living', async () => {
    const id = await opened('-i', IMAGES.alpine);
    const dry = await cofferdam(['prune', '--dry-run', '--older-than', '1d']);
    expect(dry.code).toBe(0);
    expect(dry.stderr).toMatch(/^cofferdam: would remove \d+\n$/);
    const report = JSON.parse((await cofferdam(['prune', '--json', '--older-than', '1d'])).stdout);
    expect(report).toEqual({ sandboxes: expect.any(Array), volumes: expect.any(Array), packages: expect.any(Array) });
    expect((await cofferdam(['exec', id, 'echo alive'])).stdout).toBe('alive\n');
  });

  test('a reader who has read enough is no failure', async () => {
    expect(await shell('set -o pipefail; cofferdam ls | head -c 2')).toEqual({ code: 0, output: 'ID' });
  });

  test('colour is for terminals alone', async () => {
    expect((await cofferdam(['ls'])).stdout).not.toContain('\x1b');
    expect((await cofferdam(['ls'], { env: { FORCE_COLOR: '1' } })).stdout).toContain('\x1b[1mID');
    expect((await cofferdam(['ls'], { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })).stdout).not.toContain('\x1b');
    const onTerminal = (env: string) => shell(`${env} script -qec "$(declare -f cofferdam); cofferdam ls" /dev/null`);
    expect((await onTerminal('TERM=xterm')).output).toContain('\x1b[1mID');
    expect((await onTerminal('TERM=xterm NO_COLOR=1')).output).not.toContain('\x1b');
  });

  test.each([
    [['open', '--session', 'isolated'], 2, /ends with the program that opened it/],
    [['open', '--keep', '5'], 2, /--keep must be a time/],
    [['open', '--scope', 'me'], 2, /--scope must be kind:id/],
    [['open', '--pull', 'often'], 2, /--pull must be missing or always or never/],
    [['open', '--image', 'no such image'], 1, /no such image/],
    [['close'], 2, /<sandbox> is missing; name one, or give --all/],
    [['close', '--all', 'x'], 2, /not both/],
    [['close', '--scope', 'user:x', 'y'], 2, /--scope is for --all/],
    [['prune', '--older-than', 'x'], 2, /--older-than must be a time/],
    [['prune', '--older-than', 'never'], 2, /--older-than must be a time/],
    [['ls', '--backend', 'vm'], 2, /--backend must be auto or docker or namespaces, not "vm"/],
    [['ls', '--backend', 'docker', '--host', 'tcp://127.0.0.1:1'], 1, /ENGINE_UNAVAILABLE/],
    [['ps', 'nobody-has-this'], 1, /there is no sandbox/],
  ])('%j is said in words', async (words, code, message) => {
    const ended = await cofferdam(words);
    expect(ended.stderr).toMatch(message);
    expect(ended.stderr).not.toMatch(/^ +at /m);
    expect(ended).toMatchObject({ code, stdout: '' });
  });
});
