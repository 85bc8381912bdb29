/**
 * What a command of the `cofferdam` program is. Each has a file of its own, which loads what it needs only when it runs.
 *
 * Invariant: standard output is the command's result alone. What people should know goes to standard error.
 */
import { type ParseArgsConfig, parseArgs } from 'node:util';

/** How a program ends. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

export interface Command {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What `--help` prints. */
  readonly help: string;
  /** Gives the exit code. */
  run(args: string[]): Promise<number>;
}

/** The command line is wrong: its message is for the person who wrote it. */
export class UsageError extends Error {}

/** `parseArgs`, whose complaints become a {@link UsageError}. No positional arguments unless the config allows them. */
export function options<const C extends ParseArgsConfig>(config: C): ReturnType<typeof parseArgs<C>>['values'] {
  try {
    return parseArgs<C>(config).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** A whole number of an option. */
export function wholeNumber(option: string, value: string): number {
  if (!/^\d+$/.test(value)) throw new UsageError(`${option} must be a whole number, not ${JSON.stringify(value)}`);
  return Number(value);
}

/** One of a few words. */
export function oneOf<const W extends string>(option: string, words: readonly W[], value: string): W {
  const word = words.find((candidate) => candidate === value);
  if (word === undefined) throw new UsageError(`${option} must be ${words.join(' or ')}, not ${JSON.stringify(value)}`);
  return word;
}

/** A line for people. */
export function say(line: string): void {
  process.stderr.write(`cofferdam: ${line}\n`);
}
