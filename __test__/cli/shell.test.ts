import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Sandbox } from 'cofferdam';
import { ground } from '../ground';
import { IMAGES, unique, until } from '../support';
import { manager, runs, shell } from './own-shell';
import { describeWithTmux, MAIN, Pane } from './pane';

describeWithTmux('cofferdam shell, in a terminal', () => {
  test('opens an editor, follows the size, is interrupted, and leaves with the code of the shell', async () => {
    const { pane, before, find, id } = await shell();
    pane.enter('vi poem.txt');
    await pane.shows(/^~\n(~\n){27}- poem\.txt/m);
    pane.press('i');
    pane.enter('größer – 大きい');
    pane.enter('second');
    await pane.shows(/^größer – 大きい\nsecond\n\n~/m);
    pane.resize(60, 12);
    await pane.shows(/^größer – 大きい\nsecond\n\n(~\n){8}[^\n]*poem\.txt/m);
    pane.press('Escape');
    // Escape and a key at once would be another key.
    await pane.shows(/^- poem\.txt \[Modified\]/m);
    pane.enter(':wq');
    await pane.shows(/^\/workspace #$/m);
    expect(await (await manager.get(id)).files.readText('poem.txt')).toBe('größer – 大きい\nsecond\n\n');

    pane.enter('clear; stty size; sleep 1000');
    await pane.shows(/^12 60$/m);
    await runs(id, 'sleep');
    pane.press('C-c');
    pane.enter('echo ended with $?');
    await pane.shows(/^ended with 130$/m);

    pane.enter('yes "$(stty size)"');
    await pane.shows(/^(12 60\n){10}/m);
    pane.press('C-c');
    await pane.shows(/\/workspace #$/m);

    pane.enter('cat');
    await runs(id, 'cat', 2);
    pane.press('C-z');
    await pane.shows(/Stopped/);
    pane.enter('fg');
    await pane.shows(/^\/workspace # fg\ncat$/m);
    pane.press('C-c');
    await pane.shows(/\^C\n\/workspace #$/m);
    pane.enter('exit 7');
    await pane.shows(/^outer>$/m);
    expect(await pane.run('echo $?')).toBe('7\n');
    expect(await pane.settings()).toBe(before.replace('rows 30; columns 100', 'rows 12; columns 60'));
    expect(await find()).toEqual([]);
  }, 180_000);

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s gives the terminal back, also from an editor',
    async (signal) => {
      const { pane, before, find } = await shell();
      const modes = pane.modes;
      // As editors leave it: another screen, no cursor, the mouse, keys and lines in modes of their own, half a sequence.
      pane.enter(
        String.raw`printf '\033[?1049h\033[?25l\033[?1002;1006;2004h\033[?1h\033=\033[3;9r\033[31mred\033]0;half'; cat`,
      );
      await until(() => pane.modes !== modes && pane.screen.includes('red'));
      process.kill(await pane.program(), signal);
      await pane.shows(/^outer>$/m);
      expect(await pane.run('echo $?')).toBe(`${{ SIGTERM: 143, SIGINT: 130, SIGHUP: 129 }[signal]}\n`);
      expect(pane.modes).toBe(modes);
      expect(await pane.settings()).toBe(before);
      expect(await find()).toEqual([]);
    },
  );

  test('a sandbox that is killed beneath it is told of, and the terminal is given back', async () => {
    const { pane, before, id } = await shell();
    pane.enter('vi poem.txt');
    await pane.shows(/- poem\.txt/);
    await (await ground.boxOf(id)).kill();
    await pane.shows(/^cofferdam: .*\(SANDBOX_LOST\)\nouter>$/m);
    expect(await pane.run('echo $?')).toBe('1\n');
    expect(await pane.settings()).toBe(before);
    expect(pane.modes).toContain('alternate_on=0 cursor_flag=1');
  });

  test('a fault of its own is told on a terminal that was given back', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-fault-'));
    const fault = path.join(folder, 'fault.cjs');
    writeFileSync(fault, "process.on('SIGUSR2', () => { throw new Error('our own fault'); });");
    // It ends by its own doing, not by its lease.
    const env = { NODE_OPTIONS: `--require ${fault}`, COFFERDAM_ORPHAN_TIMEOUT: '10m' };
    const { pane, before, find } = await shell({ pane: { env } });
    pane.enter(String.raw`printf '\033[?1049h\033[?25l'; cat`);
    await until(() => pane.modes.includes('alternate_on=1'));
    process.kill(await pane.program(), 'SIGUSR2');
    await pane.shows(/^Error: our own fault\n(.*\n)*outer>$/m);
    expect(pane.modes).toContain('alternate_on=0 cursor_flag=1');
    expect(await pane.settings()).toBe(before);
    await until(async () => (await find()).length === 0);
    rmSync(folder, { recursive: true });
  });

  test('stopped and brought back, it has the terminal again', async () => {
    const { pane, before, id } = await shell();
    process.kill(await pane.program(), 'SIGSTOP');
    await pane.shows(/^outer>$/m);
    expect(await pane.settings()).toBe(before);
    pane.enter('clear; fg');
    await pane.shows(/ shell --image/);
    pane.enter('sleep 1000');
    await runs(id, 'sleep');
    pane.press('C-c');
    pane.enter('echo code $?; exit 5');
    await pane.shows(/^code 130$/m);
    await pane.shows(/^outer>$/m);
    expect(await pane.run('echo $?')).toBe('5\n');
    expect(await pane.settings()).toBe(before);
  });

  test('killed outright, it leaves no sandbox', async () => {
    const { pane, find } = await shell();
    process.kill(await pane.program(), 'SIGKILL');
    await until(async () => (await find()).length === 0);
  });

  test('goes with its window', async () => {
    const { pane, find } = await shell();
    const program = await pane.program();
    pane.close();
    await until(async () => (await find()).length === 0);
    await until(() => !isAlive(program));
  });
});

describeWithTmux('cofferdam shell, in a sandbox that is there', () => {
  async function place(): Promise<{ sandbox: Sandbox; pane: Pane }> {
    const sandbox = await manager.open({ scope: { workflow: unique() } });
    return { sandbox, pane: await Pane.open() };
  }

  test('is left with its keys and come back to, and the sandbox stays', async () => {
    const { sandbox, pane } = await place();
    pane.enter(`$NODE $COFFERDAM shell ${sandbox.id} -e TEAM=blue -w /tmp`);
    await pane.shows(/^\/tmp #$/m);
    pane.enter('clear; echo team $TEAM; cat');
    await pane.shows(/^team blue$/m);
    // By itself, the first key is but a key.
    pane.press('C-]', 'x');
    await pane.shows(/^\^\]x$/m);
    pane.press('C-]', 'd');
    const line = await pane.shows(/^cofferdam: detached; to reattach: cofferdam shell sbx_\w+ --join \w+$/m);
    await pane.shows(/^outer>$/m);
    expect(await pane.run('echo $?')).toBe('0\n');
    const [, back] = /cofferdam (shell .*)$/.exec(line) ?? [];
    pane.enter('clear');
    await until(() => pane.screen.trim() === 'outer>');
    pane.enter(`$NODE $COFFERDAM ${back}`);
    await pane.shows(/^team blue\n\^\]x$/m);
    pane.press('C-c');
    pane.enter('exit 3');
    await pane.shows(/^outer>$/m);
    expect(await pane.run('echo $?')).toBe('3\n');
    expect((await sandbox.exec('echo still here')).stdout).toBe('still here\n');
  });

  test('ends what it opened when it is told to end', async () => {
    const { sandbox, pane } = await place();
    pane.enter(`$NODE $COFFERDAM shell ${sandbox.id} -- sleep 1234`);
    const runs = async () => (await sandbox.processes()).some(({ exitCode }) => exitCode === null);
    await until(runs);
    await pane.shows(/sleep 1234$/m);
    process.kill(await pane.program(), 'SIGTERM');
    await pane.shows(/^outer>$/m);
    expect(await runs()).toBe(false);
  });

  test('--session makes a session that is found again', async () => {
    const pane = await Pane.open();
    const name = unique('session');
    const words = `$NODE $COFFERDAM shell --image ${IMAGES.alpine} --session ${name}`;
    pane.enter(`${words} -- sh -c 'echo to be continued > plan.txt'; echo left $?`);
    await pane.shows(/^left 0$/m);
    pane.enter(`clear; $NODE $COFFERDAM shell ${name} -- cat plan.txt`);
    await pane.shows(/^to be continued$/m);
    const [kept] = (await manager.list()).filter(({ key }) => key.endsWith(`:${name}`));
    await (await manager.get(kept?.id ?? 'none')).close();
  });
});

describe('cofferdam shell, without a terminal', () => {
  test.each([
    [['shell'], /needs a terminal, and standard input is not one. For scripts: cofferdam run/],
    [['shell', 'web'], /For scripts: cofferdam exec web …/],
    [['shell', 'web', '--image', 'python'], /--image is for a new sandbox, and web already exists/],
    [['shell', '--join', 'exec_1'], /name the sandbox/],
    [['shell', '--session', 'isolated'], /give it a name/],
    [
      ['shell', 'web', '--join', 'exec_1', '--', 'ls'],
      /--join reattaches to what runs there: a command cannot be given/,
    ],
    [['shell', 'web', '--join', 'exec_1', '-e', 'A=1'], /env cannot be given/],
  ])('%j is refused with what to do instead', async (words, message) => {
    const child = spawn(process.execPath, [MAIN, ...words], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    child.stderr.on('data', (data) => {
      said += data;
    });
    expect(await once(child, 'close')).toEqual([2, null]);
    expect(said).toMatch(message);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
