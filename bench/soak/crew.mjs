// The hosts of a soak, from outside: starts them, asks them, kills one and starts another in its place.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const HOST = fileURLToPath(new URL('./host.mjs', import.meta.url));
const HOSTS = 4;

/** Nothing keeps a host alive whose manager is closed; so long it may take to exit. */
const EXITS_WITHIN_MS = 10_000;

export class Crew {
  #runId;
  #hear;
  #hosts = [];
  #started = 0;

  /** @param {(what: { told?: object, failed?: object }, place: number) => void} hear */
  constructor(runId, hear) {
    this.#runId = runId;
    this.#hear = hear;
  }

  start() {
    for (let place = 0; place < HOSTS; place += 1) this.#hosts[place] = this.#host(place);
  }

  #host(place) {
    const args = [String(this.#started), this.#runId];
    this.#started += 1;
    const child = fork(HOST, args, { execArgv: ['--expose-gc'] });
    const host = { child, exited: once(child, 'exit'), expectedToEnd: false, waiting: new Map(), asked: 0 };
    child.on('message', (message) => {
      if (message.answer === undefined) this.#hear(message, place);
      else host.waiting.get(message.answer)(message);
    });
    child.on('exit', (exitCode, signal) => {
      for (const settle of host.waiting.values()) settle({ error: { message: 'the host ended before it answered' } });
      if (host.expectedToEnd) return;
      this.#hear({ failed: { kind: 'host', message: `died by itself: ${signal ?? `exit code ${exitCode}`}` } }, place);
      this.#hosts[place] = this.#host(place);
    });
    return host;
  }

  get pids() {
    return this.#hosts.map(({ child }) => child.pid);
  }

  async ask(place, ask, details = {}) {
    const host = this.#hosts[place];
    host.asked += 1;
    const id = host.asked;
    const answered = new Promise((resolve) => {
      host.waiting.set(id, resolve);
    });
    host.child.send({ ask, id, ...details });
    const { value, error } = await answered;
    host.waiting.delete(id);
    if (error) throw new Error(`host ${place}, asked to ${ask}: ${error.code ?? ''} ${error.message}`);
    return value;
  }

  askAll(ask, details) {
    return Promise.all(this.#hosts.map((_, place) => this.ask(place, ask, details)));
  }

  async replace(place) {
    const host = this.#hosts[place];
    host.expectedToEnd = true;
    host.child.kill('SIGKILL');
    await host.exited;
    this.#hosts[place] = this.#host(place);
  }

  /** @returns {Promise<number[]>} the places whose hosts did not exit by themselves */
  async finish() {
    for (const host of this.#hosts) host.expectedToEnd = true;
    await this.askAll('finish');
    const late = await Promise.all(this.#hosts.map((host) => exitsInTime(host)));
    return late.flatMap((inTime, place) => (inTime ? [] : [place]));
  }

  async kill() {
    await Promise.all(
      this.#hosts.map(async (host) => {
        host.expectedToEnd = true;
        host.child.kill('SIGKILL');
        if (host.child.exitCode === null && host.child.signalCode === null) await host.exited;
      }),
    );
  }
}

async function exitsInTime({ child, exited }) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve(false), EXITS_WITHIN_MS);
  });
  const inTime = await Promise.race([exited.then(([exitCode]) => exitCode === 0), late]);
  clearTimeout(timer);
  if (!inTime) child.kill('SIGKILL');
  return inTime;
}
