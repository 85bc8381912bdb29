/** What `manager.events()` yields: one type per kind of event, distinguished by `type`. */
import type { SandboxErrorCode } from './errors';
import type { PullProgress } from './pull';

/** How to listen. */
export interface EventsOptions {
  /** Ends the iteration; it rejects with `signal.reason`. */
  signal?: AbortSignal;
}

interface AnyEvent {
  /** By the host's clock. */
  at: Date;
  /** How many events were dropped before this one because the reader was too slow. */
  missed?: number;
}

interface EventOfSandbox extends AnyEvent {
  /** `sbx_…` */
  sandboxId: string;
  /** `workflow:wf_abc123:default` */
  key: string;
}

interface EventOfManager extends AnyEvent {
  /** Of no sandbox. */
  sandboxId?: undefined;
  /** Of no session. */
  key?: undefined;
}

/** A sandbox was created for a session. */
export interface OpenedEvent extends EventOfSandbox {
  /** Identifies the kind of event. */
  type: 'opened';
  /** Resolved: `python:3.11-slim`. */
  image: string;
}

/** An existing sandbox was opened, found by its id, or started again. */
export interface ResumedEvent extends EventOfSandbox {
  /** Identifies the kind of event. */
  type: 'resumed';
  /** Resolved: `python:3.11-slim`. Only from `open()`. */
  image?: string;
}

/** A sandbox will end soon: a minute before, or a fifth of the term. */
export interface ExpiringEvent extends EventOfSandbox {
  /** Identifies the kind of event. */
  type: 'expiring';
  /** Which term runs out. */
  reason: 'idle' | 'max-lifetime';
  /** How long it has left. */
  inMs: number;
  /** When it ends, by the host's clock. */
  expiresAt?: Date;
}

/** A sandbox was closed, or its lease ran out. */
export interface ClosedEvent extends EventOfSandbox {
  /** Identifies the kind of event. */
  type: 'closed';
  /** Why: a call, the end of its scope, manager or run, or one of its timeouts. */
  reason: 'closed' | 'stopped' | 'scope-ended' | 'manager-closed' | 'run-ended' | 'idle' | 'max-lifetime' | 'orphaned';
}

/** A sandbox disappeared without having been closed. */
export interface LostEvent extends EventOfSandbox {
  /** Identifies the kind of event. */
  type: 'lost';
  /** What became of it. */
  reason: 'stopped' | 'exited' | 'oom' | 'removed' | 'replaced' | 'engine-restarted';
  /** Exit code of the sandbox's first process, if the reason is `exited`. */
  exitCode?: number;
}

/** A command started, in this or another program. */
export interface ExecStartedEvent extends EventOfSandbox {
  /** Identifies the kind of event. */
  type: 'exec-started';
  /** Its id, for `sandbox.process()`. */
  execId: string;
  /** At most 200 characters of it. */
  command: string;
}

/** A command ended, in this or another program. */
export interface ExecFinishedEvent extends EventOfSandbox {
  /** Identifies the kind of event. */
  type: 'exec-finished';
  /** Its id, for `sandbox.process()`. */
  execId: string;
  /** 128+n when a signal ended it. */
  exitCode: number;
  /** The signal that ended it: `SIGKILL`. Absent when none did. */
  signal?: string;
  /** Whether `timeoutMs` ended it. */
  timedOut: boolean;
  /** Whether the kernel killed it because the sandbox ran out of memory. */
  oomKilled: boolean;
  /** From its start to the end of everything that it started. */
  durationMs: number;
}

/** The kernel killed a command because the sandbox ran out of memory. */
export interface OomEvent extends EventOfSandbox {
  /** Identifies the kind of event. */
  type: 'oom';
  /** The command's id, for `sandbox.process()`. */
  execId: string;
}

/** The warm pool created a sandbox, or failed to. */
export interface WarmingEvent extends EventOfManager {
  /** Identifies the kind of event. */
  type: 'warming';
  /** As `warm` names it. */
  image: string;
  /** How many the pool holds when it is full. */
  count: number;
  /** How many it holds now. Absent after a failure. */
  ready?: number;
  /** What went wrong, after a failure. The pool tries again. */
  error?: string;
  /** The same for programs. */
  code?: SandboxErrorCode;
}

/** A step of a pull. */
export interface PullEvent extends EventOfManager, PullProgress {
  /** Identifies the kind of event. */
  type: 'pull';
}

/**
 * What happened, and to which sandbox: a union discriminated by `type`. Later versions may add types.
 *
 * @example
 * ```ts
 * for await (const event of manager.events()) {
 *   if (event.type === 'exec-finished') console.log(event.execId, event.exitCode);
 *   else if (event.type === 'lost') console.warn(event.sandboxId, event.reason);
 * }
 * ```
 */
export type SandboxEvent =
  | OpenedEvent
  | ResumedEvent
  | ExpiringEvent
  | ClosedEvent
  | LostEvent
  | ExecStartedEvent
  | ExecFinishedEvent
  | OomEvent
  | WarmingEvent
  | PullEvent;
