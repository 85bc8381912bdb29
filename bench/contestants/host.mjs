// No sandbox at all: `child_process.spawn` and `node:fs` on the host, the limit that the others are held against.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { runProgram } from '../program.mjs';

export class Host {
  id = 'host';
  #folder;

  async start() {
    this.#folder = await mkdtemp(path.join(os.tmpdir(), 'cofferdam-bench-host-'));
  }

  async stop() {
    if (this.#folder) await rm(this.#folder, { recursive: true, force: true });
  }

  exec([program, ...args]) {
    return runProgram(program, args);
  }

  async write(name, bytes) {
    await writeFile(path.join(this.#folder, name), bytes);
  }

  read(name) {
    return readFile(path.join(this.#folder, name));
  }

  async list(name) {
    const folder = path.join(this.#folder, name);
    const names = await readdir(folder);
    return (await Promise.all(names.map((entry) => lstat(path.join(folder, entry))))).length;
  }

  /** For commands that name a path: the others have theirs at PLACE. */
  get place() {
    return this.#folder;
  }

  async stream([program, ...args], take) {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const closed = once(child, 'close');
    for await (const chunk of child.stdout) take(chunk.length);
    const [exitCode] = await closed;
    return exitCode;
  }
}
