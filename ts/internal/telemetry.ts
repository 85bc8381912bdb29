/**
 * Spans and metrics of calls, if the program has `@opentelemetry/api`; else nothing.
 *
 * Must never change what a call does or how it fails, and never expose contents: commands, paths and error messages appear
 * only with `details`, file contents and environment variables never.
 */
import type { Attributes, Span } from '@opentelemetry/api';
import { SandboxError } from '../errors';
import type { Command, ExecResult, RunResult, TelemetryOptions } from '../options';
import * as check from './check';
import { type MeasuredKind, measure } from './metrics';
import { packageVersion, SCOPE } from './package';

type OpenTelemetry = typeof import('@opentelemetry/api');

/** Enough to recognize a command. */
const MAX_DETAIL = 1024;

let api: OpenTelemetry | null | undefined;

/** Loaded once, at the first call that can use it. */
function openTelemetry(): OpenTelemetry | null {
  if (api === undefined) {
    try {
      api = require('@opentelemetry/api') as OpenTelemetry;
    } catch {
      api = null;
    }
  }
  return api;
}

export interface Activity {
  kind: MeasuredKind;
  /** Name of the span. */
  name: string;
  /** Attributes of the metrics, with few values each. */
  labels: Attributes;
  /** Attributes of the span at its start. */
  attributes: Attributes;
}

/** How a call ended. */
export interface Outcome {
  /** The `error.type`; absent on success. */
  error?: string;
  attributes: Attributes;
  labels?: Attributes;
  /** Consecutive phases from its start: children of its span. */
  phases?: readonly { name: string; durationMs: number }[];
  /** Bytes transferred, for transfers. */
  bytes?: number;
}

/** The telemetry of one manager and its sandboxes. */
export class Telemetry {
  readonly #isOn: boolean;
  readonly #hasDetails: boolean;

  constructor(options: false | TelemetryOptions = {}) {
    this.#isOn = options !== false;
    this.#hasDetails =
      options !== false && check.boolean('telemetry.details', check.object('telemetry', options).details ?? false);
  }

  /** Does the work; `activity` and `outcome` are called only if telemetry is on. */
  observed<T>(activity: () => Activity, work: () => Promise<T>, outcome: (result: T) => Outcome): Promise<T> {
    const otel = this.#isOn ? openTelemetry() : null;
    return otel === null ? work() : this.#observed(otel, activity(), work, outcome);
  }

  async #observed<T>(
    otel: OpenTelemetry,
    { kind, name, labels, attributes }: Activity,
    work: () => Promise<T>,
    outcome: (result: T) => Outcome,
  ): Promise<T> {
    // With explicit times, phases begin where the span does, and durations are finer than the wall clock.
    const startTime = Date.now();
    const began = performance.now();
    const span = otel.trace.getTracer(SCOPE, packageVersion()).startSpan(name, { attributes, startTime });
    const parent = otel.trace.setSpan(otel.context.active(), span);
    const finish = (result: Outcome, message?: string) => {
      const durationMs = performance.now() - began;
      span.setAttributes(result.attributes);
      if (result.error !== undefined) fail(otel, span, result.error, message);
      let at = startTime;
      for (const phase of result.phases ?? []) {
        const child = otel.trace
          .getTracer(SCOPE, packageVersion())
          .startSpan(`sandbox.${phase.name}`, { startTime: at }, parent);
        at += phase.durationMs;
        child.end(at);
      }
      span.end(startTime + durationMs);
      const measured = { ...labels, ...result.labels };
      measure(otel.metrics.getMeterProvider(), kind, measured, {
        isOk: result.error === undefined,
        durationMs,
        bytes: result.bytes,
      });
    };
    try {
      const result = await otel.context.with(parent, work);
      finish(outcome(result));
      return result;
    } catch (error) {
      finish({ error: errorType(error), attributes: {} }, this.#hasDetails ? String(error) : undefined);
      throw error;
    }
  }

  /** An attribute that appears only with `details`. */
  details(name: string, value: Command): Attributes {
    if (!this.#hasDetails) return {};
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return { [name]: String(text).slice(0, MAX_DETAIL) };
  }
}

/** For objects without a manager. */
export const standard = new Telemetry();

const owners = new WeakMap<object, Telemetry>();

/** Registers a manager's telemetry, for its tools. */
export function telemetryFor(manager: object, telemetry: Telemetry): Telemetry {
  owners.set(manager, telemetry);
  return telemetry;
}

/** Observes a tool call of a manager: its span has the tool's name and is the parent of what the tool does. */
export function observedTool<R extends object>(manager: object, tool: string, work: () => Promise<R>): Promise<R> {
  const attributes = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool };
  return (owners.get(manager) ?? standard).observed(
    () => ({ kind: 'tool', name: tool, labels: { tool }, attributes }),
    work,
    (result: { ok?: unknown; code?: unknown; exit_code?: unknown }) => ({
      error: result.ok === false ? String(result.code ?? result.exit_code ?? 'failed') : undefined,
      attributes: typeof result.exit_code === 'number' ? { 'sandbox.exit_code': result.exit_code } : {},
    }),
  );
}

/** Attributes of a sandbox. */
export function about({ id, key, image }: { id: string; key: string; image: string }): Attributes {
  return { 'sandbox.id': id, 'sandbox.key': key, 'sandbox.image': image };
}

export function transfer(
  what: 'upload' | 'download' | 'stage' | 'publish',
  sandbox: Parameters<typeof about>[0],
  telemetry: Telemetry,
  path: string,
): Activity {
  const attributes = { ...about(sandbox), ...telemetry.details('sandbox.path', path) };
  return { kind: 'transfer', name: `sandbox.${what}`, labels: { transfer: what }, attributes };
}

export function execOutcome(result: ExecResult): Outcome {
  return {
    error: result.ok
      ? undefined
      : result.timedOut
        ? 'timed_out'
        : result.oomKilled
          ? 'oom_killed'
          : `${result.exitCode}`,
    attributes: {
      'sandbox.exec_id': result.execId,
      'sandbox.exit_code': result.exitCode,
      'sandbox.stdout_bytes': Buffer.byteLength(result.stdout),
      'sandbox.stderr_bytes': Buffer.byteLength(result.stderr),
      'sandbox.timed_out': result.timedOut,
    },
  };
}

export function runOutcome(result: RunResult): Outcome {
  const { error, attributes } = execOutcome(result);
  return {
    error,
    attributes: {
      ...attributes,
      'sandbox.runtime': result.runtime,
      'sandbox.image': result.image,
      'sandbox.artifacts_count': result.artifacts.length,
    },
    labels: { runtime: result.runtime },
    phases: result.phases,
  };
}

export function transferOutcome(result: { bytes?: number; sizeBytes?: number; files?: number }): Outcome {
  const bytes = result.bytes ?? result.sizeBytes ?? 0;
  return { bytes, attributes: { 'sandbox.transfer.bytes': bytes, 'sandbox.transfer.files': result.files ?? 1 } };
}

/** In seconds; absent if there is no limit. */
export function timeoutSeconds(timeoutMs: number | undefined): Attributes {
  const isLimit = typeof timeoutMs === 'number' && timeoutMs > 0 && Number.isFinite(timeoutMs);
  return isLimit ? { 'sandbox.timeout_seconds': timeoutMs / 1000 } : {};
}

/** The kind of an error, without its message. */
export function errorType(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (error instanceof SandboxError) return error.code;
  return typeof code === 'string' ? code : typeof name === 'string' ? name : typeof error;
}

function fail(otel: OpenTelemetry, span: Span, type: string, message: string | undefined): void {
  span.setAttributes({ error: true, 'error.type': type });
  span.setStatus({ code: otel.SpanStatusCode.ERROR, message: message ?? type });
}
