/**
 * What every framework's adapter is built on: which tools there are, and one way to call them.
 *
 * Invariant: `call()` answers whatever the model wrote. What is wrong is said in the result, as data made for a model; only
 * an aborted call rejects, with the signal's own reason.
 */
import type { OpenOptions } from '../options';

/** A JSON Schema, as plain data. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** One tool, as plain data: what a model is told of it. */
export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

/** Whose tools they are: the scope and session all calls work in, and what `open()` gets. */
export interface ToolContext extends Omit<OpenOptions, 'signal' | 'onPullProgress'> {
  /** `code`: a session that stays; `compute`: `sandbox_run` alone. `code` unless told. */
  mode?: 'code' | 'compute';
  /** Only these of the mode's tools. */
  include?: readonly string[];
  /** The most bytes of text of one stream or file in a result; what is over it keeps head and tail. */
  maxResultBytes?: number;
}

/** A piece of a running command's output. */
export interface ToolOutput {
  stream: 'stdout' | 'stderr';
  text: string;
}

export interface ToolCallOptions {
  signal?: AbortSignal;
  /** Told of output while a command runs. */
  onOutput?: (output: ToolOutput) => void;
}

/** A call that could not be carried out, for the model to read. */
export interface ToolFailure {
  ok: false;
  error: string;
  /** A `SandboxErrorCode`. */
  code: string;
  /** What to try next. */
  hint?: string;
}

/** Snake case, plain JSON. */
export type ToolResult = { [field: string]: unknown } | ToolFailure;

export interface Toolset extends AsyncDisposable {
  /** Those of this set, in a fixed order. */
  readonly tools: readonly ToolDefinition[];
  call(name: string, input: unknown, options?: ToolCallOptions): Promise<ToolResult>;
  /** Closes the session if these tools opened it and nobody else can come back to it (it has no scope). */
  close(): Promise<void>;
}
