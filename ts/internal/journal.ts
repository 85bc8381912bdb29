/**
 * Writes what happens to the program's own log: structured, with the names of events as messages.
 *
 * Must never break or delay a call: errors of a logger are ignored. Logs ids, names, sizes and codes, never commands or
 * files.
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

/** How often events are polled. */
const POLL_INTERVAL_MS = 100;

/** How long a poll waits for the addon's threads to answer. */
const POLL_TIMEOUT_MS = 5;

const LEVELS: Level[] = ['debug', 'info', 'warn', 'error'];

/** Which events are logged, at which level and by which name. Pulls are not: `onPullProgress` reports them. */
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
      // A broken logger must not fail a call.
    }
  }

  /**
   * Logs what happens from now on. It polls, because a pending read would keep the program alive. Does nothing without a
   * logger.
   */
  follow(listen: () => NativeEvents): void {
    if (this.#logger === undefined) return;
    const events = listen();
    this.#events = events;
    this.#timer = setInterval(() => {
      this.#reading = this.#reading.then(() => this.#poll(events));
    }, POLL_INTERVAL_MS).unref();
  }

  async #poll(events: NativeEvents): Promise<void> {
    try {
      for (;;) {
        const batch = await abortable({}, AbortSignal.timeout(POLL_TIMEOUT_MS), (cancel) => events.nextMany(cancel));
        if (batch.length === 0) return clearInterval(this.#timer);
        for (const event of batch) this.#event(toSandboxEvent(event));
      }
    } catch {
      // No more events for now.
    }
  }

  /** Logs the remaining events, once the manager is closed. */
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

  #event(event: SandboxEvent): void {
    const { type, at, sandboxId, key, ...rest } = event;
    const { command: _, ...details }: Fields = rest;
    const fields = { at, sandbox_id: sandboxId, key, ...snakeCased(details) };
    if (event.type === 'warming') {
      if (event.error !== undefined) this.#write('warn', fields, 'sandbox_warm_failed');
      return;
    }
    const entry = EVENTS[type];
    if (entry) this.#write(entry[0], fields, entry[1]);
  }

  /** Logs the start and the end of a run, under one correlation id. */
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
