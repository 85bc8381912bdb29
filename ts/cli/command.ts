/**
 * A command of the `cofferdam` program: a description, from which parsing, help and completions are derived, and a
 * function. Each has its own file under `commands/`.
 *
 * Invariant: standard output holds only the command's result. Messages for people go to standard error.
 */

/** Exit codes, except those of commands in a sandbox. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

/** What a shell may offer for a value: fixed words, or what it finds; a place is a file or `sandbox:`. */
export type Completion = readonly string[] | 'file' | 'folder' | 'sandbox' | 'place' | 'image';

/** An option of the command line. */
export interface Flag {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** Placeholder of its value in the help: `image` is shown as `<image>`. */
  readonly value?: string;
  readonly about: string;
  /** Its heading in the help. By default, `Options`. */
  readonly group?: string;
  readonly complete?: Completion;
}

export type Flags = Readonly<Record<string, Flag>>;

/** A positional argument. */
export interface Operand {
  readonly name: string;
  readonly about?: string;
  readonly optional?: boolean;
  readonly many?: boolean;
  readonly complete?: Completion;
}

type Value<F extends Flag> = F['type'] extends 'boolean' ? boolean : F['multiple'] extends true ? string[] : string;

/** The value of each flag that was given. */
export type Given<F extends Flags> = { readonly [Name in keyof F]?: Value<F[Name]> };

export interface Invocation<F extends Flags> {
  readonly flags: Given<F>;
  readonly operands: readonly string[];
  /** The words after the operands, unparsed, for a command that has a `tail`. */
  readonly tail: readonly string[];
}

export interface Command<F extends Flags = Flags> {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** For programs, such as completions: not listed in the help. */
  readonly hidden?: boolean;
  /** A few sentences, for its own help. */
  readonly about?: string;
  readonly operands?: readonly Operand[];
  /**
   * Everything after the operands belongs to another program, including options: `exec <sandbox> ls -la`. Our own options
   * come before.
   */
  readonly tail?: Operand;
  readonly flags: F;
  readonly examples: readonly { readonly line: string; readonly about: string }[];
  /** Returns the exit code. */
  run(invocation: Invocation<F>): Promise<number>;
}

/** Types the flags of a command in its `run`. */
export function command<const F extends Flags>(definition: Command<F>): Command {
  return definition as unknown as Command;
}

/** The command line is wrong; the message is for the person who typed it. */
export class UsageError extends Error {}

/** Prints a line for people. */
export function say(line: string): void {
  process.stderr.write(`cofferdam: ${line}\n`);
}
