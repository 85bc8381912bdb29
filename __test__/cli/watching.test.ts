/** The commands that go on: `forward`, `stats` and `events`. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describeWithEngine, IMAGES, testManager, unique, until } from '../support';
import { describeWithTmux, MAIN, Pane } from './pane';

const manager = testManager({ defaults: { image: IMAGES.alpine } });

const children: ChildProcess[] = [];

/** The program, and what it has printed so far. */
function cofferdam(...words: string[]) {
  const child = spawn(process.execPath, [MAIN, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const printed = { stdout: '', stderr: '' };
  child.stdout.on('data', (data) => (printed.stdout += data));
  child.stderr.on('data', (data) => (printed.stderr += data));
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, ...printed }));
  const prints = (pattern: RegExp) => until(() => pattern.exec(printed.stdout));
  return { child, ended, prints, printed, lines: () => printed.stdout.split('\n').filter(Boolean) };
}

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

/** A server in the sandbox that says one word to each who comes. */
const SERVE = (port: number) => `while true; do printf 'HTTP/1.0 200 OK\r\n\r\nfrom ${port}' | nc -l -p ${port}; done`;

describeWithEngine('cofferdam forward', () => {
  test('carries several ports, waits for their servers, and ends with Ctrl-C', async () => {
    const sandbox = await manager.open();
    await sandbox.spawn(SERVE(8000));
    const free = await freePort();
    const { child, prints, printed, ended, lines } = cofferdam('forward', sandbox.id, '8000', `${free}:9000`, '--wait');
    const [, url = ''] = await prints(/^(http:\S+) → 8000$/m);
    expect(await (await fetch(url)).text()).toBe('from 8000');
    await until(() => printed.stderr.includes('waiting until a program listens on port 9000'));
    expect(lines()).toHaveLength(1);
    await sandbox.spawn(SERVE(9000));
    await prints(new RegExp(`^http://127\\.0\\.0\\.1:${free} → 9000$`, 'm'));
    expect(await (await fetch(`http://127.0.0.1:${free}`)).text()).toBe('from 9000');
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 0 });
    await expect(fetch(url)).rejects.toThrow();
    expect((await sandbox.exec('echo still here')).ok).toBe(true);
  });

  test('prints lines of JSON, and fails when the sandbox goes', async () => {
    const sandbox = await manager.open({ session: 'isolated' });
    const { prints, lines, ended } = cofferdam('forward', sandbox.id, '8000', '--json');
    await prints(/\n/);
    const [line = ''] = lines();
    expect(JSON.parse(line)).toEqual({
      sandboxId: sandbox.id,
      port: 8000,
      hostPort: expect.any(Number),
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    });
    await sandbox.close();
    const { code, stderr } = await ended;
    expect([code, stderr]).toEqual([1, expect.stringContaining(`the sandbox ${sandbox.id} is gone: closed`)]);
  });

  test('says what is no port, and which port is taken', async () => {
    const sandbox = await manager.open();
    for (const word of ['web', '0', '70000', '1:2:3', '99999:80']) {
      const { code, stderr } = await cofferdam('forward', sandbox.id, word).ended;
      expect([code, stderr]).toEqual([2, expect.stringContaining(`"${word}" is not a port`)]);
    }
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const { code, stderr } = await cofferdam('forward', sandbox.id, `${port}:80`).ended;
    server.close();
    expect([code, stderr]).toEqual([1, expect.stringContaining(String(port))]);
  });
});

describeWithEngine('cofferdam stats', () => {
  test('gives numbers for programs once, of those that are named or of a scope', async () => {
    const workflow = unique();
    const busy = await manager.open({ scope: { workflow }, limits: { memoryMb: 128 } });
    const idle = await manager.open({ scope: { workflow }, session: 'idle' });
    await busy.spawn('while true; do true; done');
    const { code, stdout } = await cofferdam('stats', '--scope', `workflow:${workflow}`, '--json').ended;
    expect(code).toBe(0);
    const found = JSON.parse(stdout);
    expect(found).toMatchObject([
      {
        id: busy.id,
        key: busy.key,
        limits: { memoryMb: 128 },
        memoryBytes: expect.any(Number),
        pids: expect.any(Number),
      },
      { id: idle.id },
    ]);
    // Of two that ran side by side, whatever else the machine does.
    expect(found[0].cpuPercent).toBeGreaterThan(10 * found[1].cpuPercent);
    const named = await cofferdam('stats', idle.id).ended;
    expect(named.stdout).toMatch(/^SANDBOX +CPU +MEMORY .*KEY\n/);
    expect(named.stdout).toContain(idle.id);
    expect(named.stdout).not.toContain(busy.id);
    await manager.endScope({ workflow });
  });

  test('streams lines, in which sandboxes come and go, and keeps none from ending when idle', async () => {
    const workflow = unique();
    const scope = { workflow };
    const brief = testManager({ defaults: { image: IMAGES.alpine }, idleTimeoutMs: 4_000 });
    const { child, lines, ended } = cofferdam(
      ...['stats', '--scope', `workflow:${workflow}`, '--json', '--follow', '--interval', '0.2'],
    );
    const last = () => JSON.parse(lines().at(-1) ?? 'null')?.map(({ id }: { id: string }) => id);
    await until(() => last()?.length === 0);
    const sandbox = await brief.open({ scope });
    await until(() => last()?.[0] === sandbox.id);
    await until(() => last()?.length === 0);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('fails for what is not there, and says what does not go together', async () => {
    expect(await cofferdam('stats', 'nope').ended).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cofferdam ls'),
    });
    for (const words of [
      ['--once', '--follow'],
      ['--interval', '0'],
      ['--interval', 'often'],
      ['--scope', 'x'],
    ]) {
      expect(await cofferdam('stats', ...words).ended).toMatchObject({ code: 2, stdout: '' });
    }
  });
});

describeWithTmux('cofferdam stats, in a terminal', () => {
  test('is drawn in place, with those that come and without those that go, and leaves the cursor', async () => {
    const workflow = unique();
    const scope = { workflow };
    const first = await manager.open({ scope });
    const pane = await Pane.open({ cols: 90, rows: 12 });
    const before = await pane.settings();
    pane.enter(`clear; $NODE $COFFERDAM stats --scope workflow:${workflow} --interval 0.2`);
    await pane.shows(new RegExp(`^SANDBOX .*\\n${first.id} `, 'm'));
    expect(pane.modes).toContain('cursor_flag=0');
    const second = await manager.open({ scope, session: 'second' });
    await pane.shows(new RegExp(`^SANDBOX .*\\n${first.id} .*\\n${second.id} `, 'm'));
    pane.resize(40, 8);
    await pane.shows(new RegExp(`^SANDBOX .*\\n${first.id} .{0,11}\\n${second.id} `, 'm'));
    await first.close();
    await pane.shows(new RegExp(`^SANDBOX .*\\n${second.id} .*\\n\\n`, 'm'));
    pane.press('C-c');
    await pane.shows(/^outer>$/m);
    expect(await pane.run('echo $?')).toBe('0\n');
    expect(pane.modes).toContain('cursor_flag=1');
    expect(await pane.settings()).toBe(before.replace('rows 12; columns 90', 'rows 8; columns 40'));
    await manager.endScope(scope);
  });
});

describeWithEngine('cofferdam events', () => {
  test('tells of sandboxes that others open and close', async () => {
    const workflow = unique();
    const { child, prints, printed, ended } = cofferdam('events', '--scope', `workflow:${workflow}`);
    const ids: string[] = [];
    // Until it has begun to look, what happens is the past.
    await until(async () => {
      const sandbox = await manager.open({ scope: { workflow }, session: unique('s') });
      ids.push(sandbox.id);
      const opened = new RegExp(`^\\S+Z opened +${sandbox.id} workflow:${workflow}:\\S+ image=`, 'm');
      const late = Date.now() + 3_000;
      await until(() => opened.test(printed.stdout) || Date.now() > late);
      return opened.test(printed.stdout);
    });
    await manager.endScope({ workflow });
    await prints(new RegExp(`^\\S+Z closed +${ids.at(-1)} `, 'm'));
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('of a named one, tells what runs in it and why it ends, as lines of JSON, and ends with it', async () => {
    const sandbox = await manager.open({ session: 'isolated' });
    const { lines, ended } = cofferdam('events', sandbox.id, '--json');
    const events = () => lines().map((line) => JSON.parse(line));
    await until(async () => {
      await sandbox.exec('exit 3');
      return events().some(({ type }) => type === 'exec-finished');
    });
    expect(events()).toContainEqual(expect.objectContaining({ type: 'exec-started', command: 'exit 3' }));
    expect(events()).toContainEqual(expect.objectContaining({ type: 'exec-finished', exitCode: 3 }));
    await sandbox.close();
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
    expect(events().at(-1)).toMatchObject({ type: 'closed', sandboxId: sandbox.id, reason: 'closed' });
  });

  test('with --commands, of all, and nothing twice', async () => {
    const workflow = unique();
    const scope = { workflow };
    const { child, lines, ended } = cofferdam('events', '--scope', `workflow:${workflow}`, '--commands', '--json');
    const events = () => lines().map((line) => JSON.parse(line));
    const sandbox = await manager.open({ scope });
    await until(async () => {
      await sandbox.exec('echo from afar');
      return events().some(({ type, command }) => type === 'exec-started' && command === 'echo from afar');
    });
    await manager.endScope(scope);
    await until(() => events().some(({ type }) => type === 'closed'));
    // Two looks later, a second one would have been told.
    const other = await manager.open({ scope, session: 'other' });
    await until(() => events().some(({ type, sandboxId }) => type === 'opened' && sandboxId === other.id));
    expect(events().filter(({ type }) => type === 'closed')).toHaveLength(1);
    await manager.endScope(scope);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}
