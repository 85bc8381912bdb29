import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeOnDocker, until } from '../support';
import { manager, shell } from './own-shell';
import { describeWithTmux } from './pane';

const describeOnDockerWithTmux = process.env.COFFERDAM_NO_TMUX ? describe.skip : describeOnDocker;

describeWithTmux('what passes through cofferdam shell', () => {
  test('a megabyte of any bytes, pasted, arrives as it was', async () => {
    const { pane, id } = await shell();
    const sandbox = await manager.get(id);
    const bytes = randomBytes(1024 * 1024);
    pane.enter('stty raw -echo; touch ready; head -c 1048576 > pasted; stty sane; echo done');
    await until(() => sandbox.files.exists('ready'));
    pane.paste(bytes);
    await pane.shows(/^done$/m);
    const { bytes: arrived } = await sandbox.files.read('pasted', { maxBytes: 2 ** 21 });
    expect(Buffer.compare(arrived, bytes)).toBe(0);
    pane.enter('exit');
    await pane.shows(/^outer>$/m);
  });

  test('keys, marks of a paste, the mouse and cut characters arrive one by one as they were', async () => {
    const { pane, id } = await shell();
    const sandbox = await manager.get(id);
    // Ctrl-C, Ctrl-Z, Ctrl-\\, Ctrl-S, Ctrl-], a line feed, an arrow, a paste, a click, and a character in two parts.
    const pieces = ['\x03', '\x1a', '\x1c', '\x13', '\x1d', '\n', '\x1b[A', '\x1b[200~a\rb\x1b[201~', '\x1b[<0;5;6M'];
    const bytes = [...pieces.map((piece) => Buffer.from(piece)), Buffer.from([0xe5, 0xa4]), Buffer.from([0xa7])];
    const whole = Buffer.concat(bytes);
    pane.enter(`stty raw -echo; touch ready; dd bs=1 count=${whole.length} of=typed 2>/dev/null; stty sane; echo done`);
    await until(() => sandbox.files.exists('ready'));
    let length = 0;
    for (const piece of bytes) {
      pane.paste(piece);
      length += piece.length;
      const sofar = length;
      await until(async () => (await sandbox.files.stat('typed'))?.sizeBytes === sofar);
    }
    await pane.shows(/^done$/m);
    expect(Buffer.from((await sandbox.files.read('typed')).bytes)).toEqual(whole);
  });

  test('a bare line feed goes down and not back, as full-screen programs mean it', async () => {
    const { pane } = await shell();
    pane.enter(String.raw`clear; stty -opost; printf 'one\ntwo'; stty opost; echo`);
    await pane.shows(/^one\n {3}two$/m);
  });

  test('a terminal that takes nothing holds up the program in the sandbox, and fills no memory', async () => {
    const { pane, id } = await shell();
    const sandbox = await manager.get(id);
    const program = await pane.program();
    const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${program}/status`, 'utf8'))?.[1]) / 1024;
    const find = 'for p in /proc/[0-9]*; do test "$(cat $p/comm)" = tr && grep wchar $p/io; done';
    const written = async () => Number((await sandbox.exec(find)).stdout.replace('wchar: ', ''));
    const before = resident();
    pane.enter(String.raw`tr '\0' y < /dev/zero`);
    await until(async () => (await written()) > 1_000_000);
    const thaw = pane.freeze();
    try {
      let looks: number[] = [];
      await until(async () => {
        looks = [...looks, await written()].slice(-20);
        return looks.length === 20 && new Set(looks).size === 1;
      });
      expect(resident() - before).toBeLessThan(64);
    } finally {
      thaw();
    }
    pane.press('C-c');
    await pane.shows(/\/workspace #$/m);
  });

  test('ends when it is told to, though the terminal takes nothing', async () => {
    const { pane, before, find } = await shell();
    const program = await pane.program();
    pane.enter('yes');
    await pane.shows(/^y\ny$/m);
    const thaw = pane.freeze();
    try {
      // Long enough for the terminal to be full.
      await sleep(500);
      process.kill(program, 'SIGTERM');
      await until(() => !existsSync(`/proc/${program}`));
    } finally {
      thaw();
    }
    await until(async () => (await find()).length === 0);
    expect(await pane.settings()).toBe(before);
  });
});

describeOnDockerWithTmux('cofferdam shell, on an engine far away', () => {
  /** A way to the engine that can be cut. */
  async function way() {
    const connections = new Set<Socket>();
    let made = 0;
    const proxy = createServer((client) => {
      made += 1;
      const engine = connect(/^unix:\/\/(.*)$/.exec(process.env.DOCKER_HOST ?? '')?.[1] ?? '/var/run/docker.sock');
      for (const socket of [client, engine]) connections.add(socket.on('error', () => {}));
      client.pipe(engine).pipe(client);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const { port } = proxy.address() as AddressInfo;
    const cut = () => {
      for (const socket of connections) socket.destroy();
    };
    const far = await shell({
      words: `--host tcp://127.0.0.1:${port}`,
      pane: { env: { COFFERDAM_SHORTCUT: 'off' } },
    });
    const close = () => {
      proxy.close();
      cut();
    };
    /** Until it was seen: what is typed into a line that is dead already is lost, as on any other. */
    const cutAndMade = async () => {
      const before = made;
      cut();
      await until(() => made > before);
    };
    return { ...far, cut: cutAndMade, close };
  }

  test('goes on after the connection was cut', async () => {
    const { pane, cut, close } = await way();
    pane.enter('clear; echo before');
    await pane.shows(/^before$/m);
    await cut();
    pane.enter('echo after $((1 + 1))');
    await pane.shows(/^after 2$/m);
    pane.enter('exit 4');
    await pane.shows(/^outer>$/m);
    expect(await pane.run('echo $?')).toBe('4\n');
    close();
  });

  test('says that the engine is gone, and gives the terminal back', async () => {
    const { pane, before, find, close } = await way();
    pane.enter('vi poem.txt');
    await pane.shows(/- poem\.txt/);
    close();
    await pane.shows(/^cofferdam: .*\(\w+\)\nouter>$/m);
    expect(await pane.run('echo $?')).toBe('1\n');
    expect(await pane.settings()).toBe(before);
    // Its lease sees to it.
    await until(async () => (await find()).length === 0);
  });
});
