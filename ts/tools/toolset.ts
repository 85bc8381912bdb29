/**
 * The base of every framework's adapter: the tools, and one way to call them.
 *
 * Invariant: `call()` answers whatever the model wrote. A failure is a result that the model can read. Only an aborted call
 * rejects, with `signal.reason`.
 */
import type { OpenOptions, RunRequest } from '../options';
import type { Sandbox } from '../sandbox';

/** A JSON Schema, as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** One tool, as plain data for a model. */
export interface ToolDefinition {
  /** `sandbox_exec`, `sandbox_fs_read`… */
  readonly name: string;
  /** For the model: what it does, and when to use it. */
  readonly description: string;
  /** Schema of its input. */
  readonly inputSchema: JsonSchema;
  /** Schema of its result. */
  readonly outputSchema: JsonSchema;
}

/**
 * Whose tools they are: the scope and session of all calls, and the options of `open()`.
 *
 * With a scope, the tools reach the sessions of that scope, by name or by id, and no others. Without a scope and a session,
 * the sandbox belongs to these tools alone: not even `open()` of the same manager shares it.
 *
 * @example
 * ```ts
 * const tools = createToolset(manager, { scope: { workflow: 'wf_abc123' }, image: 'python' });
 * ```
 */
export interface ToolContext extends Omit<OpenOptions, 'signal' | 'onPullProgress'> {
  /**
   * `code`: a session that stays between calls; `compute`: only `sandbox_run`.
   *
   * @default 'code'
   */
  mode?: 'code' | 'compute';
  /** Only these tools of the mode. */
  include?: readonly string[];
  /**
   * The maximum size of one stream or file in a result, at least 100 bytes. Longer text is shortened to head and tail.
   *
   * @default 65536
   */
  maxResultBytes?: number;
  /**
   * How long a command or a run may take when the model does not say. 0 means no limit.
   *
   * @default 300_000 for a command, 120_000 for a run
   */
  commandTimeoutMs?: number;
  /**
   * Sandboxes that these tools create end after this time without a call.
   *
   * @default the manager's `idleTimeoutMs`
   */
  idleTimeoutMs?: number;
  /** The maximum size of a file that these tools write. */
  maxFileBytes?: number;
  /** How many different files these tools may write in one session, or pass to one run. */
  maxFiles?: number;
  /**
   * How many sessions these tools may have open at the same time.
   *
   * @default 10
   */
  maxSessions?: number;
  /**
   * What runs the code of `sandbox_run` when the model does not say.
   *
   * @default 'python'
   */
  runtime?: NonNullable<RunRequest['runtime']>;
}

/** A piece of a running command's output. */
export interface ToolOutput {
  /** The stream it was printed to. */
  stream: 'stdout' | 'stderr';
  /** Never cut inside a character. */
  text: string;
}

/** Options of a call. */
export interface ToolCallOptions {
  /** Aborts the call and kills the command with its process tree; rejects with `signal.reason`. */
  signal?: AbortSignal;
  /** Called with output while a command runs. A callback that throws is not called again. */
  onOutput?: (output: ToolOutput) => void;
}

/**
 * A call that failed, for the model to read. The error behind it is in `cause`, for the host to log. It is not enumerable, so
 * that no serialiser shows it to a model.
 */
export interface ToolFailure {
  /** Always `false`. */
  ok: false;
  /** What went wrong, without anything of the host. */
  error: string;
  /** A `SandboxErrorCode`. */
  code: string;
  /** What to try next. */
  hint?: string;
}

/** Snake case, plain JSON. */
export type ToolResult = { [field: string]: unknown } | ToolFailure;

/** Tools for one agent, or for all agents of a workflow; see {@link createToolset}. */
export interface Toolset extends AsyncDisposable {
  /** The tools of this set, in a fixed order. */
  readonly tools: readonly ToolDefinition[];
  /** Runs a call of a model. A failure is a result; only an aborted call rejects. */
  call(name: string, input: unknown, options?: ToolCallOptions): Promise<ToolResult>;
  /** The sandbox of calls that name no other, if it exists now. Never creates one. */
  sandbox(): Promise<Sandbox | undefined>;
  /** Closes the sandboxes of these tools that nobody else can reach: those in no scope, and isolated ones. */
  close(): Promise<void>;
}
