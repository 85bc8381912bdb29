/** What a test writes: how commands and runs of a fake manager go. */
import type { SandboxErrorCode } from '../errors';
import type { Files } from '../files';
import type { Command } from '../options';

/** A file’s content. */
export type FakeContent = string | Uint8Array;

/** How a command goes: what it prints, then how long it takes, then how it ends. */
export interface FakeAnswer {
  /** Several pieces are several chunks. */
  stdout?: string | readonly string[];
  /** The same of standard error. */
  stderr?: string | readonly string[];
  /** 0 unless told. */
  exitCode?: number;
  /** From its output to its end; `Infinity` runs until it is killed or out of time. */
  delayMs?: number;
  /** It ran out of memory: exit code 137. */
  oomKilled?: boolean;
  /** What it leaves: path → content, or `null` for a file that is gone. */
  files?: Readonly<Record<string, FakeContent | null>>;
  /** It cannot be started: the call rejects with this. */
  error?: { code: SandboxErrorCode; message?: string; details?: Record<string, unknown> };
}

/** A command that somebody runs in a fake sandbox. */
export interface FakeExec {
  /** As it was given. */
  command: Command;
  /** As it was given; the workdir where it was not. */
  cwd: string | undefined;
  /** The sandbox's own, and over it the command's. */
  env: Record<string, string>;
  /** As it was given. */
  user: string | undefined;
  /** All of its input, once that has ended. */
  stdin(): Promise<string>;
  /** Those of the sandbox it runs in. */
  files: Files;
}

/** One rule for commands. */
export interface FakeCommand extends FakeAnswer {
  /** Exactly this string or array; what matches the string, or the words of an array with spaces between; or as you say. */
  command: Command | RegExp | ((exec: FakeExec) => boolean);
  /** Instead of what stands beside it: worked out when the command runs. */
  answer?: (exec: FakeExec) => FakeAnswer | Promise<FakeAnswer>;
  /** For so many commands, then the next rule that fits; for all of them unless told. */
  times?: number;
}

/** A program that somebody gives to `run()`. */
export interface FakeProgram {
  /** What it is for. */
  runtime: 'python' | 'node' | 'bash';
  /** The program itself. */
  code: string;
  /** What it is given. */
  args: readonly string[];
  /** Those of the sandbox it runs in. */
  files: Files;
}

/** One rule for `run()`. What it leaves in `files` and the request's globs name are its artifacts. */
export interface FakeRun extends FakeAnswer {
  /** Exactly this program, what matches it, or as you say. */
  code: string | RegExp | ((program: FakeProgram) => boolean);
  /** Instead of what stands beside it: worked out when the program runs. */
  answer?: (program: FakeProgram) => FakeAnswer | Promise<FakeAnswer>;
  /** For so many programs, then the next rule that fits; for all of them unless told. */
  times?: number;
}

/** How a fake manager goes. Of several rules that fit, the first counts. */
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
