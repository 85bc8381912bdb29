/**
 * What happens, for the program's own log: structured, with the names of events for messages.
 *
 * Must never break or delay a call: what a logger throws is dropped. Shows ids, names, sizes and codes, and of commands
 * and files nothing.
 */
import { randomBytes } from 'node:crypto';
import type { Logger } from '../logger';
import type { RunRequest, RunResult, SandboxEvent } from '../options';
import type { NativeEvents } from './binding';
import { abortable } from './call';
import * as check from './check';
import { toSandboxEvent } from './info';
import { errorType } from './telemetry';

type Level = keyof Logger;
type Fields = Record<string, unknown>;

/** A log may be late by so much. */
const LOOK_EVERY_MS = 100;

/** How long a look waits for the addon's threads to answer. */
const LOOK_FOR_MS = 5;

const LEVELS: Level[] = ['debug', 'info', 'warn', 'error'];

/** Which events are told, as what, and how loudly. Pulls are steps, told to who asked for them. */
const EVENTS: Partial<Record<SandboxEvent['type'], [Level, string]>> = {
  opened: ['info', 'sandbox_opened'],
  resumed: ['info', 'sandbox_resumed'],
  expiring: ['info', 'sandbox_expiring'],
  closed: ['info', 'sandbox_closed'],
  lost: ['warn', 'sandbox_lost'],
  oom: ['warn', 'sandbox_oom'],
  'exec-started': ['debug', 'sandbox_exec_started'],
  'exec-finished': ['debug', 'sandbox_exec_finished'],
};

export class Journal {
  readonly #logger: Logger | undefined;
  #events: NativeEvents | undefined;
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<void> = Promise.resolve();

  constructor(logger: Logger | undefined) {
    if (logger !== undefined) {
      check.object('logger', logger);
      for (const level of LEVELS) check.optionalFunction(`logger.${level}`, logger[level]);
    }
    this.#logger = logger;
  }

  #write(level: Level, fields: Fields, message: string): void {
    try {
      this.#logger?.[level]?.(fields, message);
    } catch {
      // A log that does not work is no reason for a call to fail.
    }
  }

  /**
   * Writes down what happens from now on. A read that waits would keep the program alive: this one looks now and then
   * instead. Listens to nothing where there is no logger.
   */
  follow(listen: () => NativeEvents): void {
    if (this.#logger === undefined) return;
    const events = listen();
    this.#events = events;
    this.#timer = setInterval(() => {
      this.#reading = this.#reading.then(() => this.#readWhatIsThere(events));
    }, LOOK_EVERY_MS).unref();
  }

  async #readWhatIsThere(events: NativeEvents): Promise<void> {
    try {
      for (;;) {
        const batch = await abortable({}, AbortSignal.timeout(LOOK_FOR_MS), (cancel) => events.nextMany(cancel));
        if (batch.length === 0) return clearInterval(this.#timer);
        for (const event of batch) this.#event(toSandboxEvent(event));
      }
    } catch {
      // Nothing more for now.
    }
  }

  /** Writes down the rest, once there will be no more. */
  async finish(): Promise<void> {
    const events = this.#events;
    if (!events) return;
    this.#events = undefined;
    clearInterval(this.#timer);
    await this.#reading;
    for (let batch = await events.nextMany(); batch.length > 0; batch = await events.nextMany()) {
      for (const event of batch) this.#event(toSandboxEvent(event));
    }
  }

  #event({ type, at, sandboxId, key, command: _, ...details }: SandboxEvent): void {
    const fields = { at, sandbox_id: sandboxId, key, ...snakeCased(details) };
    if (type === 'warming') {
      if (details.error !== undefined) this.#write('warn', fields, 'sandbox_warm_failed');
      return;
    }
    const told = EVENTS[type];
    if (told) this.#write(told[0], fields, told[1]);
  }

  /** A run from its start to its end, under one correlation id. */
  async run(request: RunRequest, work: () => Promise<RunResult>): Promise<RunResult> {
    if (this.#logger === undefined) return work();
    const { runtime = 'python', image = runtime } = request;
    const about = { run_id: `run_${randomBytes(8).toString('hex')}`, runtime, image };
    const began = performance.now();
    const durationMs = () => Math.round((performance.now() - began) * 1000) / 1000;
    this.#write('info', about, 'sandbox_run_started');
    try {
      const result = await work();
      const fields = {
        ...about,
        image: result.image,
        duration_ms: durationMs(),
        ok: result.ok,
        exit_code: result.exitCode,
        timed_out: result.timedOut,
        stdout_bytes: Buffer.byteLength(result.stdout),
        stderr_bytes: Buffer.byteLength(result.stderr),
        artifacts_count: result.artifacts.length,
      };
      this.#write('info', fields, 'sandbox_run_finished');
      return result;
    } catch (error) {
      this.#write('error', { ...about, duration_ms: durationMs(), code: errorType(error) }, 'sandbox_run_failed');
      throw error;
    }
  }
}

function snakeCased(fields: Fields): Fields {
  const entries = Object.entries(fields).map(([name, value]) => [
    name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
    value,
  ]);
  return Object.fromEntries(entries);
}
