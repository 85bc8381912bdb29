// The docker command. `docker cp` moves files between disks, so that is what is timed: the host's copy is written before
// and looked at after.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { output, runProgram } from '../program.mjs';
import { IDLE_COMMAND, IMAGE, labelsOf, PLACE } from '../ring.mjs';
import { linesOfListing } from './dockerode.mjs';

export class DockerCli {
  id = 'docker-cli';
  #runId;
  #container;
  #folder;

  constructor(runId) {
    this.#runId = runId;
  }

  static async isThere() {
    try {
      await output('docker', ['version']);
      return true;
    } catch {
      return false;
    }
  }

  async start() {
    this.#folder = await mkdtemp(path.join(os.tmpdir(), 'cofferdam-bench-cli-'));
    this.#container = await this.#run('none');
    await output('docker', ['exec', this.#container, 'mkdir', '-p', PLACE]);
  }

  async stop() {
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true });
    if (this.#container) await remove(this.#container);
  }

  async #run(network) {
    const labels = Object.entries(labelsOf(this.#runId)).flatMap(([name, value]) => ['--label', `${name}=${value}`]);
    const args = ['run', '--detach', '--rm', '--network', network, ...labels, IMAGE, ...IDLE_COMMAND];
    return (await output('docker', args)).trim();
  }

  exec(argv) {
    return runProgram('docker', ['exec', this.#container, ...argv]);
  }

  async stage(name, bytes) {
    await writeFile(path.join(this.#folder, name), bytes);
  }

  async write(name) {
    await output('docker', ['cp', path.join(this.#folder, name), `${this.#container}:${PLACE}/${name}`]);
  }

  async read(name) {
    await output('docker', ['cp', `${this.#container}:${PLACE}/${name}`, this.#copy(name)]);
  }

  /** What the last `read` brought. */
  fetched(name) {
    return readFile(this.#copy(name));
  }

  #copy(name) {
    return path.join(this.#folder, `${name}.copy`);
  }

  async upload(from, name) {
    await output('docker', ['cp', from, `${this.#container}:${PLACE}/${name}`]);
  }

  async download(name, to) {
    await output('docker', ['cp', `${this.#container}:${PLACE}/${name}`, to]);
  }

  async list(name) {
    return linesOfListing(await output('docker', ['exec', this.#container, 'ls', '-lA', `${PLACE}/${name}`]));
  }

  async open({ network }) {
    const container = await this.#run(network ? 'default' : 'none');
    return () => remove(container);
  }

  /** To /dev/null: the most that `docker exec` can give. */
  async stream(argv) {
    const child = spawn('docker', ['exec', this.#container, ...argv], { stdio: ['ignore', 'ignore', 'inherit'] });
    const [exitCode] = await once(child, 'close');
    return exitCode;
  }
}

function remove(container) {
  return output('docker', ['rm', '--force', container]);
}
