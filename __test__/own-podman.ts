/**
 * Podman's service, which belongs to the test: everything of it is below one temporary folder.
 *
 * It is given what a package would have put below `/etc`, a runtime that works with any kind of cgroups, and limits that may be set
 * where root lacks CAP_SYS_RESOURCE.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import Docker from 'dockerode';
import { until } from './support';

const CONTAINERS_CONF = (conmon: string) => `
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
conmon_path = [${JSON.stringify(conmon)}, "/usr/bin/conmon"]

[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
`;

const STORAGE_CONF = (folder: string) => `
[storage]
driver = "overlay"
graphroot = "${folder}/graph"
runroot = "${folder}/run"
`;

export class OwnPodman implements AsyncDisposable {
  readonly #folder: string;
  readonly #service: ChildProcess;
  readonly client: Docker;

  private constructor(folder: string, service: ChildProcess) {
    this.#folder = folder;
    this.#service = service;
    this.client = new Docker({ socketPath: `${folder}/podman.sock` });
  }

  /** Starts a service that has this image of the machine's own engine, and nothing else. */
  static async start(program: string, image: string): Promise<OwnPodman> {
    const folder = await mkdtemp(path.join(tmpdir(), 'cofferdam-podman-'));
    const home = path.join(folder, 'home/.config/containers');
    await mkdir(home, { recursive: true });
    await writeFile(`${home}/policy.json`, JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }));
    await writeFile(`${folder}/containers.conf`, CONTAINERS_CONF(path.join(path.dirname(program), 'conmon')));
    await writeFile(`${folder}/storage.conf`, STORAGE_CONF(folder));
    const log = await open(`${folder}/log`, 'a');
    const roots = ['--root', `${folder}/graph`, '--runroot', `${folder}/run`, '--tmpdir', `${folder}/tmp`];
    const words = [...roots, 'system', 'service', '--time', '0', `unix://${folder}/podman.sock`];
    const service = spawn('unshare', ['--mount', 'sh', '-euc', await beside(program), 'sh', program, ...words], {
      stdio: ['ignore', log.fd, log.fd],
      env: {
        HOME: `${folder}/home`,
        PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
        CONTAINERS_CONF: `${folder}/containers.conf`,
        CONTAINERS_STORAGE_CONF: `${folder}/storage.conf`,
      },
    });
    await log.close();
    const podman = new OwnPodman(folder, service);
    try {
      await podman.#load(image);
      return podman;
    } catch (error) {
      await podman[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #load(image: string): Promise<void> {
    await until(async () => {
      if (this.#service.exitCode !== null) throw new Error(await readFile(`${this.#folder}/log`, 'utf8'));
      return this.client.ping().then(
        () => true,
        () => false,
      );
    });
    const loading = await this.client.loadImage(await new Docker().getImage(image).get());
    await once(loading.resume(), 'end');
  }

  /** What to give as `docker.host`. */
  get host(): string {
    return `unix://${this.#folder}/podman.sock`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { Id } of await this.client.listContainers({ all: true }).catch(() => [])) {
      await this.client.getContainer(Id).remove({ force: true });
    }
    if (this.#service.exitCode === null) {
      this.#service.kill('SIGTERM');
      await once(this.#service, 'exit');
    }
    const mounts = (await readFile('/proc/mounts', 'utf8')).split('\n').map((line) => line.split(' ')[1] ?? '');
    for (const mount of mounts.filter((mount) => mount.startsWith(`${this.#folder}/`)).reverse()) {
      await once(spawn('umount', ['--lazy', mount], { stdio: 'ignore' }), 'exit');
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/**
 * A shell's words that lay the libraries which were unpacked with the program over the machine's own, for itself alone, and run
 * it. A variable would not do: Podman starts itself again to clean up, without it.
 */
async function beside(program: string): Promise<string> {
  const folder = path.resolve(path.dirname(program), '../lib');
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('-linux-gnu'));
  const isOurs = !folder.startsWith('/usr/');
  const mounts = names.map((name) => {
    const own = path.join('/usr/lib', name);
    return `mount -t overlay overlay -o lowerdir=${path.join(folder, name)}:${own} ${own}; `;
  });
  return `${isOurs ? mounts.join('') : ''}exec "$@"`;
}
