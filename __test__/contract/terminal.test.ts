import { Terminal as Emulator } from '@xterm/headless';
import type { Sandbox, Terminal } from 'cofferdam';
import { countProcesses, describeWithEngine, IMAGES, imagesOf, testManager, until } from '../support';

/** What a person would see: the bytes of a terminal on a screen. */
class Screen {
  readonly #emulator: Emulator;
  readonly ended: Promise<void>;

  constructor(terminal: Terminal, cols = 80, rows = 24) {
    this.#emulator = new Emulator({ cols, rows, allowProposedApi: true });
    this.ended = (async () => {
      for await (const bytes of terminal) await new Promise<void>((done) => this.#emulator.write(bytes, done));
    })();
  }

  resize(cols: number, rows: number) {
    this.#emulator.resize(cols, rows);
  }

  lines(): string[] {
    const { active } = this.#emulator.buffer;
    const line = (_: unknown, row: number) => active.getLine(active.baseY + row)?.translateToString(true) ?? '';
    return Array.from({ length: this.#emulator.rows }, line);
  }

  get text(): string {
    return this.lines().join('\n');
  }

  shows(pattern: RegExp): Promise<unknown> {
    return until(() => pattern.test(this.text));
  }
}

/** Waits until a program of this name runs in the sandbox. */
async function runs(sandbox: Sandbox, name: string): Promise<void> {
  await until(async () => (await sandbox.exec('cat /proc/[0-9]*/comm')).stdout.split('\n').includes(name));
}

describeWithEngine.each(imagesOf('debian', 'alpine'))('a terminal on %s', (image) => {
  const manager = testManager({ defaults: { image } });
  let sandbox: Sandbox;

  beforeAll(async () => {
    sandbox = await manager.open();
  });

  test('has a size, a type and a shell of its own, and tells programs when its size changes', async () => {
    const terminal = await sandbox.terminal({ cols: 100, rows: 30, env: { TEAM: 'blue' } });
    const screen = new Screen(terminal, 100, 30);
    await terminal.write('stty size; echo $TERM/$TEAM; test -t 0 && test -t 1 && test -t 2 && echo all of it\n');
    await screen.shows(/^30 100\nxterm-256color\/blue\nall of it$/m);
    await terminal.write('trap "echo resized" WINCH; clear\n');
    await terminal.resize({ cols: 60, rows: 20 });
    screen.resize(60, 20);
    await terminal.write('stty size\n');
    await screen.shows(/^20 60$/m);
    await terminal.write('exit 7\n');
    expect(await terminal.wait()).toEqual({ exitCode: 7, signal: null });
    await screen.ended;
  });

  test('turns keys into signals', async () => {
    const terminal = await sandbox.terminal();
    const screen = new Screen(terminal);
    await terminal.write('sleep 1000\n');
    await runs(sandbox, 'sleep');
    await terminal.write('\x03');
    await terminal.write('echo ended with $?\n');
    await screen.shows(/^ended with 130$/m);
    await terminal.write('wc -c\n');
    // What is typed ahead of a program is not yet its own: Ctrl-D would be a character to the shell.
    await runs(sandbox, 'wc');
    await terminal.write('to be counted\n\x04');
    await screen.shows(/^14$/m);
    await terminal.close();
    await terminal.close();
    await screen.ended;
  });

  test('closing it ends all that runs on it', async () => {
    const terminal = await sandbox.terminal();
    const screen = new Screen(terminal);
    // In front, and behind one that ignores what a terminal's end sends.
    const lines = ['sleep 98761', 'sleep 98762'];
    await terminal.write(`sh -c 'trap "" HUP TERM; ${lines[0]}; :' & ${lines[1]}\n`);
    const running = () => Promise.all(lines.map((line) => countProcesses(sandbox, line)));
    await until(async () => !(await running()).includes(0));
    await terminal.close();
    expect((await terminal.wait()).exitCode).toBeGreaterThan(0);
    await screen.ended;
    expect((await sandbox.processes()).filter(({ exitCode }) => exitCode === null)).toEqual([]);
    expect(await running()).toEqual([0, 0]);
  });

  test('runs any command, as any user', async () => {
    const terminal = await sandbox.terminal({ command: ['sh', '-c', 'id -u; pwd; tty'], user: '1000', cwd: '/tmp' });
    const screen = new Screen(terminal);
    await screen.ended;
    expect(screen.text).toMatch(/^1000\n\/tmp\n\/dev\/pts\/\d+$/m);
  });

  test('is joined again by its id, from another program too, with what is kept of its screen', async () => {
    const terminal = await sandbox.terminal({ detached: true });
    await terminal.write('echo before $((1 + 1))\n');
    await new Screen(terminal).shows(/^before 2$/m);
    const elsewhere = await (await testManager().get(sandbox.id)).terminal({ execId: terminal.execId });
    const screen = new Screen(elsewhere);
    await screen.shows(/^before 2$/m);
    await elsewhere.write('echo after $((2 + 2))\n');
    await screen.shows(/^after 4$/m);
    await terminal.kill('SIGKILL');
    expect(await elsewhere.wait()).toEqual({ exitCode: 137, signal: 'SIGKILL' });
  });

  test('refuses sizes that no terminal has, and shells that are not there', async () => {
    for (const size of [{ cols: 0 }, { rows: 70_000 }, { cols: 1.5 }]) {
      await expect(sandbox.terminal(size)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
    await expect(sandbox.terminal({ command: ['nope'] })).rejects.toMatchObject({ code: 'COMMAND_NOT_FOUND' });
    await expect(sandbox.terminal({ execId: 'exec_nope' })).rejects.toMatchObject({ code: 'PROCESS_NOT_FOUND' });
    const plain = await sandbox.spawn('sleep 1');
    const joined = await sandbox.terminal({ execId: plain.execId });
    await expect(joined.resize({ cols: 10, rows: 10 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});

describeWithEngine('full-screen programs', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });

  test('vi edits a file as on a real screen', async () => {
    const sandbox = await manager.open({ session: 'vi' });
    await sandbox.files.write('poem.txt', 'first\nsecond\nthird\n');
    const terminal = await sandbox.terminal({ command: ['vi', 'poem.txt'], cols: 40, rows: 10 });
    const screen = new Screen(terminal, 40, 10);
    await screen.shows(/^first\nsecond\nthird\n~/);
    await terminal.write('jccnew words\x1b');
    await screen.shows(/^first\nnew words\nthird\n~/);
    await terminal.write('Gofourth line\x1b');
    // Escape and a key at once would be another key.
    await screen.shows(/^fourth line\n~(.|\n)*- poem.txt/m);
    await terminal.write(':wq\r');
    expect(await terminal.wait()).toEqual({ exitCode: 0, signal: null });
    expect(await sandbox.files.readText('poem.txt')).toBe('first\nnew words\nthird\nfourth line\n');
  });

  test('less pages, and follows the size of its screen', async () => {
    const sandbox = await manager.open({ session: 'less' });
    const lines = Array.from({ length: 200 }, (_, index) => `line ${index + 1}`);
    await sandbox.files.write('long.txt', `${lines.join('\n')}\n`);
    const terminal = await sandbox.terminal({ command: ['less', 'long.txt'], cols: 30, rows: 6 });
    const screen = new Screen(terminal, 30, 6);
    await screen.shows(/^line 1\nline 2\nline 3\nline 4\nline 5\n/);
    await terminal.write(' ');
    await screen.shows(/^line 6\nline 7/);
    await terminal.write('G');
    await screen.shows(/line 200/);
    await terminal.write('q');
    expect((await terminal.wait()).exitCode).toBe(0);
  });

  test('top shows what runs, again and again', async () => {
    const sandbox = await manager.open({ session: 'top' });
    await sandbox.spawn('exec sleep 987');
    const terminal = await sandbox.terminal({ command: ['top', '-d', '1'], cols: 80, rows: 20 });
    const screen = new Screen(terminal);
    await screen.shows(/PID(.|\n)*sleep 987/);
    await terminal.write('q');
    expect((await terminal.wait()).exitCode).toBe(0);
  });
});
