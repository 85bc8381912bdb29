/**
 * Spans and metrics of what callers do, where the program has `@opentelemetry/api`; nothing at all where it has not.
 *
 * Must never change what a call does or how it fails, and never show what a command, a file or a variable holds: commands,
 * paths and messages of errors only where the program asked for `details`, contents and environment not even then.
 */
import type { Attributes, Span } from '@opentelemetry/api';
import { SandboxError } from '../errors';
import type { Command, ExecResult, RunResult } from '../options';
import * as check from './check';
import { type MeasuredKind, measure } from './metrics';
import { packageVersion, SCOPE } from './package';

type OpenTelemetry = typeof import('@opentelemetry/api');

/** Enough to know a command again. */
const MAX_DETAIL = 1024;

let api: OpenTelemetry | null | undefined;

/** Looked for once, with the first call that could use it. */
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
  /** Of the span. */
  name: string;
  /** Of the metrics: few values each. */
  labels: Attributes;
  /** Of the span, from its start. */
  attributes: Attributes;
}

/** How it went. */
export interface Outcome {
  /** What went wrong, as `error.type`; nothing did where there is none. */
  error?: string;
  attributes: Attributes;
  labels?: Attributes;
  /** Parts of it, one after the other from its start: children of its span. */
  phases?: readonly { name: string; durationMs: number }[];
  /** Where bytes were carried. */
  bytes?: number;
}

/** What one manager and all that it opens tell. */
export class Telemetry {
  readonly #isOn: boolean;
  readonly #hasDetails: boolean;

  constructor(options: false | { details?: boolean } = {}) {
    this.#isOn = options !== false;
    this.#hasDetails =
      options !== false && check.boolean('telemetry.details', check.object('telemetry', options).details ?? false);
  }

  /** Does the work; `activity` and `outcome` are only asked where somebody may want to know. */
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
    // Both ends are said, so that phases begin where the span does, and durations are finer than the wall clock.
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

  /** What a span may say only where the program asked for it. */
  details(name: string, value: Command): Attributes {
    if (!this.#hasDetails) return {};
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return { [name]: String(text).slice(0, MAX_DETAIL) };
  }
}

/** Of what has no manager to say otherwise. */
export const standard = new Telemetry();

const owners = new WeakMap<object, Telemetry>();

/** Lets others who work for a manager tell as it does. */
export function telemetryFor(manager: object, telemetry: Telemetry): Telemetry {
  owners.set(manager, telemetry);
  return telemetry;
}

/** The call of a tool of a manager's: its span has the tool's name, and all that the tool does is below it. */
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

/** Which sandbox. */
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

/** Seconds, as the attribute wants them; left out where there is no limit. */
export function timeoutSeconds(timeoutMs: number | undefined): Attributes {
  const isLimit = typeof timeoutMs === 'number' && timeoutMs > 0 && Number.isFinite(timeoutMs);
  return isLimit ? { 'sandbox.timeout_seconds': timeoutMs / 1000 } : {};
}

/** What kind of error it is, and nothing of what it says. */
export function errorType(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (error instanceof SandboxError) return error.code;
  return typeof code === 'string' ? code : typeof name === 'string' ? name : typeof error;
}

function fail(otel: OpenTelemetry, span: Span, type: string, message: string | undefined): void {
  span.setAttributes({ error: true, 'error.type': type });
  span.setStatus({ code: otel.SpanStatusCode.ERROR, message: message ?? type });
}
