/**
 * What every framework's adapter is built on: which tools there are, and one way to call them.
 *
 * Invariant: `call()` answers whatever the model wrote. What is wrong is said in the result, as data made for a model; only
 * an aborted call rejects, with the signal's own reason.
 */
import type { OpenOptions, RunRequest } from '../options';
import type { Sandbox } from '../sandbox';

/** A JSON Schema, as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** One tool, as plain data: what a model is told of it. */
export interface ToolDefinition {
  /** `sandbox_exec`, `sandbox_fs_read`… */
  readonly name: string;
  /** For the model: what it does, and when to use it. */
  readonly description: string;
  /** What it takes. */
  readonly inputSchema: JsonSchema;
  /** What it gives. */
  readonly outputSchema: JsonSchema;
}

/**
 * Whose tools they are: the scope and session all calls work in, and what `open()` gets.
 *
 * With a scope, the tools reach the sessions of that scope, by name or by id, and no other. Without a scope and a session,
 * their sandbox is their own: not even the same manager's `open()` shares it.
 *
 * @example
 * ```ts
 * const tools = createToolset(manager, { scope: { workflow: 'wf_abc123' }, image: 'python' });
 * ```
 */
export interface ToolContext extends Omit<OpenOptions, 'signal' | 'onPullProgress'> {
  /** `code`: a session that stays; `compute`: `sandbox_run` alone. `code` unless told. */
  mode?: 'code' | 'compute';
  /** Only these of the mode's tools. */
  include?: readonly string[];
  /**
   * The most bytes of text of one stream or file in a result; what is over it keeps head and tail. 64 KiB unless told, at
   * least 100.
   */
  maxResultBytes?: number;
  /** How long a command, or a run, may take when the model does not say; 5 minutes, or 2 of a run. 0 means for ever. */
  commandTimeoutMs?: number;
  /** A sandbox that these tools make ends after so long without a call; the manager's own time unless told. */
  idleTimeoutMs?: number;
  /** No file that these tools write may be longer. */
  maxFileBytes?: number;
  /** These tools write no more different files than that in one session, or give them to one run. */
  maxFiles?: number;
  /** How many sessions these tools may have open at the same time; 10 unless told. */
  maxSessions?: number;
  /** What runs the code of `sandbox_run` when the model does not say; `python` unless told. */
  runtime?: NonNullable<RunRequest['runtime']>;
}

/** A piece of a running command's output. */
export interface ToolOutput {
  /** Which of the two it was printed to. */
  stream: 'stdout' | 'stderr';
  /** Never cut inside a character. */
  text: string;
}

/** How to carry out a call. */
export interface ToolCallOptions {
  /** Ends the command with its whole process tree; the call rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Told of output while a command runs. One that throws is not called again. */
  onOutput?: (output: ToolOutput) => void;
}

/**
 * A call that could not be carried out, for the model to read. The error behind it is in `cause`, for the host to log: it is
 * not enumerable, so that no serialiser shows it to a model.
 */
export interface ToolFailure {
  /** What a call that was carried out never has. */
  ok: false;
  /** What went wrong, in words that a model may read. */
  error: string;
  /** A `SandboxErrorCode`. */
  code: string;
  /** What to try next. */
  hint?: string;
}

/** Snake case, plain JSON. */
export type ToolResult = { [field: string]: unknown } | ToolFailure;

/** Tools for one agent, or one workflow’s agents; see {@link createToolset}. */
export interface Toolset extends AsyncDisposable {
  /** Those of this set, in a fixed order. */
  readonly tools: readonly ToolDefinition[];
  /** Carries out what a model called. What is wrong is said in the result; only an aborted call rejects. */
  call(name: string, input: unknown, options?: ToolCallOptions): Promise<ToolResult>;
  /** The sandbox that calls work in unless they name another, if it is there now: looking makes none. */
  sandbox(): Promise<Sandbox | undefined>;
  /** Closes the sandboxes that these tools opened and that nobody else can come back to: those that are in no scope, or isolated. */
  close(): Promise<void>;
}
