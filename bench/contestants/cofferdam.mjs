// Ours: one sandbox, opened once and kept; on an engine, or in namespaces of this machine's own, with its programs.

import { SandboxManager } from '../../index.mjs';
import { withPool } from '../pool.mjs';
import { IMAGE, labelsOf, PLACE } from '../ring.mjs';

export class Cofferdam {
  id = 'cofferdam';
  #runId;
  #backend;
  #image;
  #manager;
  #sandbox;

  constructor(runId, { backend = 'docker', image = IMAGE } = {}) {
    this.#runId = runId;
    this.#backend = backend;
    this.#image = image;
    this.#manager = new SandboxManager({ backend });
  }

  async start() {
    this.#sandbox = await this.sandbox();
    await this.#sandbox.files.mkdir(PLACE);
  }

  stop() {
    return this.#manager.close();
  }

  /** A manager of the same backend whose warm pool is full: see `withPool`. */
  withPool(work) {
    return withPool({ runId: this.#runId, backend: this.#backend, image: this.#image }, work);
  }

  /** A sandbox of its own, for rows that only we have. */
  sandbox(options = {}) {
    return this.#manager.open({ image: this.#image, session: 'isolated', labels: labelsOf(this.#runId), ...options });
  }

  exec(argv) {
    return this.#sandbox.exec(argv);
  }

  async write(name, bytes) {
    await this.#sandbox.files.write(`${PLACE}/${name}`, bytes);
  }

  async read(name, sizeBytes) {
    const { bytes } = await this.#sandbox.files.read(`${PLACE}/${name}`, { maxBytes: sizeBytes });
    return bytes;
  }

  async upload(from, name) {
    await this.#sandbox.files.upload(from, `${PLACE}/${name}`);
  }

  async download(name, to) {
    await this.#sandbox.files.download(`${PLACE}/${name}`, to);
  }

  async sync(from, name) {
    await this.#sandbox.files.upload(from, `${PLACE}/${name}`, { sync: true });
  }

  async list(name) {
    return (await this.#sandbox.files.list(`${PLACE}/${name}`)).length;
  }

  /** Without network in both cases: that is our default. */
  async open() {
    const sandbox = await this.sandbox();
    return () => sandbox.close();
  }

  async stream(argv, take) {
    const running = await this.#sandbox.spawn(argv);
    for await (const { data } of running) take(data.length);
    return (await running.wait()).exitCode;
  }

  async terminal(command) {
    const screen = await this.#sandbox.terminal({ command });
    return { output: screen, write: (data) => screen.write(data), close: () => screen.close() };
  }
}

export class Namespaces extends Cofferdam {
  id = 'namespaces';

  static async isThere() {
    const manager = new SandboxManager({ backend: 'namespaces' });
    try {
      await manager.info();
      return true;
    } catch {
      return false;
    } finally {
      await manager.close();
    }
  }

  constructor(runId) {
    super(runId, { backend: 'namespaces', image: 'host' });
  }
}
