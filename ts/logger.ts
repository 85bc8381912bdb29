/**
 * Where a manager writes its log: fields first, then the name of the event, as pino takes them and as `console` prints
 * them. What it throws is dropped.
 *
 * @example
 * ```ts
 * new SandboxManager({ logger: pino() });
 * new SandboxManager({ logger: { warn: (fields, message) => winston.warn(message, fields) } });
 * ```
 */
export interface Logger {
  debug?(fields: Record<string, unknown>, message: string): void;
  info?(fields: Record<string, unknown>, message: string): void;
  warn?(fields: Record<string, unknown>, message: string): void;
  error?(fields: Record<string, unknown>, message: string): void;
}
