/**
 * Where a manager writes its log: fields first, then the name of the event, as pino takes them and as `console` prints
 * them. Errors that it throws are ignored.
 *
 * @example
 * ```ts
 * const short = new SandboxManager({ logger: console });
 * const own = new SandboxManager({ logger: { warn: (fields, message) => process.stderr.write(`${message} ${fields.key}\n`) } });
 * ```
 */
export interface Logger {
  /** Commands that start and end. */
  debug?(fields: Record<string, unknown>, message: string): void;
  /** Sandboxes that open and close, and runs. */
  info?(fields: Record<string, unknown>, message: string): void;
  /** Sandboxes that were lost or ran out of memory, and failures of the warm pool. */
  warn?(fields: Record<string, unknown>, message: string): void;
  /** Runs that failed to execute. */
  error?(fields: Record<string, unknown>, message: string): void;
}
