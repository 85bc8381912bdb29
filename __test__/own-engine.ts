/**
 * A second Docker engine that belongs to the test, to be killed and started again at will.
 *
 * Everything of it is below one temporary folder, and it lives in a network namespace of its own: in the host's, an
 * engine without a bridge would delete the other engine's.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Docker from 'dockerode';
import { describeOnDocker, unlessMissing } from './support';

/** A hang guard for one start or stop. */
const PATIENCE_MS = 30_000;

/** Why there can be no second engine here; `undefined` when there can be one. */
function whyNoOwnEngine(): string | undefined {
  if (process.platform !== 'linux') return 'it takes Linux';
  if (process.getuid?.() !== 0) return 'it takes root';
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin'];
  const missing = ['dockerd', 'unshare'].find((name) => !folders.some((folder) => existsSync(path.join(folder, name))));
  return missing && `${missing} is not installed`;
}

const why = whyNoOwnEngine();

/** Suites that start a second engine. */
export const describeWithOwnEngine = unlessMissing(
  why && `a second engine cannot be started here: ${why}`,
  describeOnDocker,
);

export class OwnEngine implements AsyncDisposable {
  readonly #folder: string;
  readonly client: Docker;
  #daemon: ChildProcess | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
    this.client = new Docker({ socketPath: `${folder}/docker.sock` });
  }

  /**
   * Starts an engine that has this image of the machine's own engine, and nothing else. With `dataMb`, its data is on a disk
   * of its own, in memory, that is no larger.
   */
  static async start(image: string, { dataMb }: { dataMb?: number } = {}): Promise<OwnEngine> {
    const engine = new OwnEngine(await mkdtemp(path.join(tmpdir(), 'cofferdam-own-')));
    if (dataMb !== undefined) {
      await mkdir(engine.data);
      const mount = spawn('mount', ['-t', 'tmpfs', '-o', `size=${dataMb}m`, 'tmpfs', engine.data], {
        stdio: 'inherit',
      });
      await once(mount, 'exit');
    }
    await engine.start();
    const loading = await engine.client.loadImage(await new Docker().getImage(image).get());
    loading.resume();
    await once(loading, 'end');
    return engine;
  }

  /** Where it keeps what it has. */
  get data(): string {
    return `${this.#folder}/data`;
  }

  /** What to give as `docker.host`. */
  get host(): string {
    return `unix://${this.#folder}/docker.sock`;
  }

  /**
   * All containers there are. Docker 20.10 that was killed and started again goes on listing a nameless ghost of one that
   * it has removed, now and then (in 5 of 82 runs of the test; once with nothing but `docker run --rm`): nobody can inspect it, and it is
   * gone with the next restart.
   */
  async containers(): Promise<Docker.ContainerInfo[]> {
    const listed = await this.client.listContainers({ all: true });
    const isThere = await Promise.all(
      listed.map(({ Id }) =>
        this.client
          .getContainer(Id)
          .inspect()
          .then(
            () => true,
            (error) => error.statusCode !== 404,
          ),
      ),
    );
    return listed.filter((_, index) => isThere[index]);
  }

  async start(): Promise<void> {
    const log = await open(`${this.#folder}/log`, 'a');
    const own = (name: string) => `${this.#folder}/${name}`;
    const folders = ['--data-root', this.data, '--exec-root', own('exec'), '--pidfile', own('pid')];
    const plain = ['--bridge=none', '--iptables=false', '--host', this.host];
    const daemon = spawn('unshare', ['--net', 'dockerd', ...folders, ...plain], {
      stdio: ['ignore', log.fd, log.fd],
      env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    });
    await log.close();
    this.#daemon = daemon;
    await until('the engine answers', async () => {
      if (daemon.exitCode !== null) throw new Error(`dockerd ended: ${await readFile(own('log'), 'utf8')}`);
      return this.client.ping().then(
        () => true,
        () => false,
      );
    });
  }

  /** As a power cut does it: at once. Containers go on until the engine comes back and looks after them. */
  async kill(): Promise<void> {
    const daemon = this.#daemon;
    if (!daemon || daemon.exitCode !== null) return;
    daemon.kill('SIGKILL');
    await once(daemon, 'exit');
    // It dies with the daemon; the next daemon must not take what is left of it for a living one.
    const pidFile = `${this.#folder}/exec/containerd/containerd.pid`;
    const pid = (await readFile(pidFile, 'utf8')).trim();
    await until('containerd is gone', async () => !(await names('/proc')).includes(pid));
    await rm(pidFile, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const daemon = this.#daemon;
    if (daemon && daemon.exitCode === null && daemon.signalCode === null) {
      for (const { Id } of await this.client.listContainers({ all: true }).catch(() => [])) {
        await this.client
          .getContainer(Id)
          .remove({ force: true })
          .catch(() => {});
      }
      daemon.kill('SIGTERM');
      await once(daemon, 'exit');
    }
    await this.#endShims();
    await this.#unmount();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** What a killed engine left running: each names this engine's folder on its command line. */
  async #endShims(): Promise<void> {
    for (const pid of (await names('/proc')).filter((name) => /^\d+$/.test(name))) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (!line.includes(`${this.#folder}/`)) continue;
      for (const child of await childrenOf(pid)) kill(child);
      kill(pid);
      await until('a shim is gone', async () => (await readlink(`/proc/${pid}/exe`).catch(() => '')) === '');
    }
  }

  async #unmount(): Promise<void> {
    const mounts = (await readFile('/proc/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '');
    for (const mount of mounts.filter((mount) => mount.startsWith(`${this.#folder}/`)).reverse()) {
      await once(spawn('umount', ['--lazy', mount], { stdio: 'ignore' }), 'exit');
    }
  }
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`);
    await pause(20);
  }
}

async function names(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

async function childrenOf(pid: string): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean);
}

function kill(pid: string): void {
  try {
    process.kill(Number(pid), 'SIGKILL');
  } catch {
    // Gone by itself.
  }
}
