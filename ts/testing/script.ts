/** What a test writes: how commands and runs of a fake manager behave. */
import type { SandboxErrorCode } from '../errors';
import type { Files } from '../files';
import type { Command } from '../options';

/** A file's content. */
export type FakeContent = string | Uint8Array;

/** How a command behaves: its output, then its duration, then its end. */
export interface FakeAnswer {
  /** Several pieces are several chunks. */
  stdout?: string | readonly string[];
  /** The same of standard error. */
  stderr?: string | readonly string[];
  /**
   * How it exits.
   *
   * @default 0
   */
  exitCode?: number;
  /**
   * Time from its output to its end; `Infinity` runs until it is killed or times out.
   *
   * @default 0
   */
  delayMs?: number;
  /** It is killed for lack of memory, with exit code 137. */
  oomKilled?: boolean;
  /** Files that it writes: path → content, or `null` to remove one. */
  files?: Readonly<Record<string, FakeContent | null>>;
  /** It cannot be started; the call rejects with this error. */
  error?: { code: SandboxErrorCode; message?: string; details?: Record<string, unknown> };
}

/** A command that runs in a fake sandbox. */
export interface FakeExec {
  /** As it was given. */
  command: Command;
  /** As it was given; the workdir if it was not. */
  cwd: string | undefined;
  /** The sandbox's environment, overridden by the command's. */
  env: Record<string, string>;
  /** As it was given. */
  user: string | undefined;
  /** All of its input, once that is closed. */
  stdin(): Promise<string>;
  /** The files of its sandbox. */
  files: Files;
}

/** One rule for commands. */
export interface FakeCommand extends FakeAnswer {
  /** Exactly this string or array; an expression for the string, or the array joined by spaces; or a function. */
  command: Command | RegExp | ((exec: FakeExec) => boolean);
  /** Computes the answer when the command runs, instead of the fields beside it. */
  answer?: (exec: FakeExec) => FakeAnswer | Promise<FakeAnswer>;
  /** For this many commands, then the next rule that matches. No limit by default. */
  times?: number;
}

/** A program given to `run()`. */
export interface FakeProgram {
  /** What runs it. */
  runtime: 'python' | 'node' | 'bash';
  /** The source of the program. */
  code: string;
  /** Its arguments. */
  args: readonly string[];
  /** The files of its sandbox. */
  files: Files;
}

/** One rule for `run()`. Its `files` that match the request's globs are its artifacts. */
export interface FakeRun extends FakeAnswer {
  /** Exactly this program, an expression, or a function. */
  code: string | RegExp | ((program: FakeProgram) => boolean);
  /** Computes the answer when the program runs, instead of the fields beside it. */
  answer?: (program: FakeProgram) => FakeAnswer | Promise<FakeAnswer>;
  /** For this many programs, then the next rule that matches. No limit by default. */
  times?: number;
}

/** How a fake manager behaves. Of several rules that match, the first counts. */
export interface FakeScript {
  /** For `exec()`, `spawn()` and `init`. */
  exec?: readonly FakeCommand[];
  /** For `run()`. */
  run?: readonly FakeRun[];
  /** In every new sandbox. */
  files?: Readonly<Record<string, FakeContent>>;
  /** In the object store, by key. */
  objects?: Readonly<Record<string, FakeContent>>;
}
