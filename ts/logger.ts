/**
 * Where a manager writes its log: fields first, then the name of the event, as pino takes them and as `console` prints
 * them. What it throws is dropped.
 *
 * @example
 * ```ts
 * const short = new SandboxManager({ logger: console });
 * const own = new SandboxManager({ logger: { warn: (fields, message) => process.stderr.write(`${message} ${fields.key}\n`) } });
 * ```
 */
export interface Logger {
  /** Commands that begin and end. */
  debug?(fields: Record<string, unknown>, message: string): void;
  /** Sandboxes that open and close, and runs. */
  info?(fields: Record<string, unknown>, message: string): void;
  /** Sandboxes that were lost, ran out of memory, or could not be made ready. */
  warn?(fields: Record<string, unknown>, message: string): void;
  /** Runs that could not be carried out. */
  error?(fields: Record<string, unknown>, message: string): void;
}
