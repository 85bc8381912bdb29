/**
 * What a command of the `cofferdam` program is: a description, from which parsing, help and completions are made, and what
 * it does. Each has a file of its own under `commands/`.
 *
 * Invariant: standard output is the command's result alone. What people should know goes to standard error.
 */

/** How a program ends, unless a command in a sandbox says it. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

/** What a shell may offer in the place of a value: fixed words, or what it finds; a place is a file or `sandbox:`. */
export type Completion = readonly string[] | 'file' | 'folder' | 'sandbox' | 'place' | 'image';

/** An option of the command line. */
export interface Flag {
  readonly type: 'string' | 'boolean';
  readonly short?: string;
  readonly multiple?: boolean;
  /** What stands for its value in the help: `image` is shown as `<image>`. */
  readonly value?: string;
  readonly about: string;
  /** The heading it stands under in the help; `Options` unless told. */
  readonly group?: string;
  readonly complete?: Completion;
}

export type Flags = Readonly<Record<string, Flag>>;

/** A word that stands without an option. */
export interface Operand {
  readonly name: string;
  readonly about?: string;
  readonly optional?: boolean;
  readonly many?: boolean;
  readonly complete?: Completion;
}

type Value<F extends Flag> = F['type'] extends 'boolean' ? boolean : F['multiple'] extends true ? string[] : string;

/** What was given for each flag; absent where it was not. */
export type Given<F extends Flags> = { readonly [Name in keyof F]?: Value<F[Name]> };

export interface Invocation<F extends Flags> {
  readonly flags: Given<F>;
  readonly operands: readonly string[];
  /** The words after the operands, as they were typed, for a command that has a `tail`. */
  readonly tail: readonly string[];
}

export interface Command<F extends Flags = Flags> {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** For programs alone, such as the completions: no help lists it. */
  readonly hidden?: boolean;
  /** A few sentences, for its own help. */
  readonly about?: string;
  readonly operands?: readonly Operand[];
  /**
   * Everything after the operands belongs to another program, options included: `exec <sandbox> ls -la`. Our own options
   * stand before.
   */
  readonly tail?: Operand;
  readonly flags: F;
  readonly examples: readonly { readonly line: string; readonly about: string }[];
  /** Gives the exit code. */
  run(invocation: Invocation<F>): Promise<number>;
}

/** A command, with the types of its flags in its `run`. */
export function command<const F extends Flags>(definition: Command<F>): Command {
  return definition as unknown as Command;
}

/** The command line is wrong: its message is for the person who wrote it. */
export class UsageError extends Error {}

/** A line for people. */
export function say(line: string): void {
  process.stderr.write(`cofferdam: ${line}\n`);
}
