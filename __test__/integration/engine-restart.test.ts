import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SandboxManager } from 'cofferdam';
import Docker from 'dockerode';
import { describeWithEngine, IMAGES } from '../support';

// A second engine needs root, dockerd and `unshare`; in a network namespace of its own it leaves the first one's alone.
const canStart = process.getuid?.() === 0 && existsSync('/usr/sbin/dockerd') && existsSync('/usr/bin/unshare');
if (!canStart) console.warn('SKIPPED: a second engine cannot be started here (it needs root, dockerd and unshare)');

(canStart ? describeWithEngine : describe.skip)('an engine that is killed and started again', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-engine-'));
  const socket = path.join(folder, 'docker.sock');
  let daemon: ChildProcess;

  async function start() {
    const paths = ['--data-root', 'data', '--exec-root', 'exec'].map((part, index) =>
      index % 2 ? path.join(folder, part) : part,
    );
    const pidfile = path.join(folder, 'docker.pid');
    rmSync(pidfile, { force: true });
    daemon = spawn(
      'unshare',
      ['-n', 'dockerd', '--bridge=none', '--iptables=false', ...paths, '--pidfile', pidfile, '-H', `unix://${socket}`],
      { stdio: 'ignore' },
    );
    const engine = new Docker({ socketPath: socket });
    while (!(await engine.ping().then(Boolean, () => false))) {
      if (daemon.exitCode !== null) throw new Error(`dockerd ended with ${daemon.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return engine;
  }

  async function stop(signal: NodeJS.Signals) {
    const ended = once(daemon, 'exit');
    daemon.kill(signal);
    await ended;
    // Its containerd dies with it, but a moment later, and a new engine would wait for the old one to answer.
    const pidfile = path.join(folder, 'exec/containerd/containerd.pid');
    const pid = existsSync(pidfile) ? Number(readFileSync(pidfile, 'utf8')) : 0;
    while (pid > 0 && existsSync(`/proc/${pid}`)) await new Promise((resolve) => setTimeout(resolve, 20));
    rmSync(pidfile, { force: true });
  }

  afterAll(async () => {
    if (daemon?.exitCode === null && daemon.signalCode === null) await stop('SIGTERM');
    // An engine that was killed leaves its mounts; the deepest go first.
    const mounts = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[1] ?? '');
    for (const mount of mounts.filter((each) => each.startsWith(folder)).reverse()) execFileSync('umount', [mount]);
    rmSync(folder, { recursive: true, force: true });
  });

  test('in the middle of a call: it rejects or goes on, nothing hangs, and open() works again', async () => {
    const engine = await start();
    const image = await new Docker().getImage(IMAGES.alpine).get();
    await once((await engine.loadImage(image)).resume(), 'end');

    const manager = new SandboxManager({ docker: { host: `unix://${socket}` }, defaults: { image: IMAGES.alpine } });
    const scope = { workflow: 'restart' };
    const sandbox = await manager.open({ scope });
    const running = sandbox.exec('echo up; sleep 2; echo down').catch((error) => error);

    await stop('SIGKILL');
    const orphaned = await sandbox.exec('echo now').catch((error) => error);
    if (orphaned instanceof Error) {
      expect(orphaned).toMatchObject({
        name: 'SandboxError',
        code: expect.stringMatching(/SANDBOX_LOST|ENGINE_UNAVAILABLE/),
      });
    } else {
      expect(orphaned.stdout).toBe('now\n');
    }
    const outcome = await running;
    if (outcome instanceof Error) {
      expect(outcome).toMatchObject({
        name: 'SandboxError',
        code: expect.stringMatching(/SANDBOX_LOST|ENGINE_UNAVAILABLE/),
      });
    } else {
      expect(outcome.stdout).toBe('up\ndown\n');
    }

    await start();
    const again = await manager.open({ scope });
    expect((await again.exec('echo again')).stdout).toBe('again\n');
    await manager.close();
    const left = await new Docker({ socketPath: socket }).listContainers({ all: true });
    expect(left.map(({ Names }) => Names)).toEqual([]);
  });
});
