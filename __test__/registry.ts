/** A container registry on loopback with one image in it, which no engine has pulled yet. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import Docker from 'dockerode';
import { describeOnDocker, IMAGES, unlessMissing, until } from './support';

const program = process.env.COFFERDAM_TEST_REGISTRY;

/** Suites that pull. */
export const describeWithRegistry = unlessMissing(
  program ? undefined : 'there is no docker-registry here; npm test brings one',
  describeOnDocker,
);

const docker = new Docker();

export class Registry {
  /** What can be pulled from it. */
  readonly image: string;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(port: number, folder: string, child: ChildProcess) {
    this.image = `127.0.0.1:${port}/team/pulled:1`;
    this.#folder = folder;
    this.#child = child;
  }

  static async start(): Promise<Registry> {
    const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-registry-'));
    const port = await freePort();
    const config = path.join(folder, 'config.yml');
    const storage = { filesystem: { rootdirectory: folder } };
    // JSON is YAML.
    writeFileSync(config, JSON.stringify({ version: 0.1, storage, http: { addr: `127.0.0.1:${port}` } }));
    const child = spawn(program as string, ['serve', config], { stdio: 'ignore' });
    await until(() =>
      fetch(`http://127.0.0.1:${port}/v2/`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    const registry = new Registry(port, folder, child);
    const { image } = registry;
    await withLayer(IMAGES.alpine, image.slice(0, -2), folder);
    const pushing = await docker.getImage(image).push({ authconfig: { serveraddress: 'none' } });
    await once(pushing.resume(), 'end');
    return registry;
  }

  /** The engine has it no more. */
  async forget(): Promise<void> {
    await docker
      .getImage(this.image)
      .remove()
      .catch(() => {});
  }

  async stop(): Promise<void> {
    await this.forget();
    this.#child.kill();
    await once(this.#child, 'exit');
    rmSync(this.#folder, { recursive: true });
  }
}

/** An image with a layer that is nowhere else: a pull of it has something to fetch. */
async function withLayer(from: string, repo: string, folder: string): Promise<void> {
  writeFileSync(path.join(folder, 'payload'), randomBytes(8_000_000));
  const tar = execFileSync('tar', ['-c', '-C', folder, 'payload'], { maxBuffer: 2 ** 24 });
  const container = await docker.createContainer({ Image: from, Cmd: ['true'] });
  try {
    await container.putArchive(tar, { path: '/' });
    await container.commit({ repo, tag: '1' });
  } finally {
    await container.remove();
  }
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
