/** A NATS server of a test's own, on loopback, with JetStream in a temporary folder. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describeWithEngine, unlessMissing } from './support';

const program = process.env.COFFERDAM_TEST_NATS;

/** Suites that need a server and an engine. */
export const describeWithNats = unlessMissing(
  program ? undefined : 'there is no nats-server here; npm test brings one',
  describeWithEngine,
);

export class NatsServer {
  readonly #args: string[];
  #folder?: string;
  #child?: ChildProcess;
  #port = -1;

  /** With arguments of its own, such as `--user` and `--pass`. */
  constructor(...args: string[]) {
    this.#args = args;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#port}`;
  }

  /** Starts it; again on the same port and with what it had stored. */
  async start(): Promise<void> {
    this.#folder ??= mkdtempSync(path.join(tmpdir(), 'cofferdam-nats-'));
    const place = ['--addr', '127.0.0.1', '--port', `${this.#port}`, '--jetstream', '--store_dir', this.#folder];
    const child = spawn(program as string, [...place, ...this.#args], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    for await (const line of createInterface({ input: child.stderr })) {
      const port = /Listening for client connections on \S+:(\d+)/.exec(line)?.[1];
      if (port) this.#port = Number(port);
      if (line.includes('Server is ready')) break;
    }
    // Whoever does not read its log stops it in the end.
    child.stderr.resume();
  }

  /** Without a chance to say goodbye. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  async stop(): Promise<void> {
    await this.kill();
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true });
  }
}
