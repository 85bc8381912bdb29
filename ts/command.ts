/** Commands: how they run, and how they ended. */
import type { OutputCallback } from './callbacks';

/** A command: a string runs in the sandbox's shell (bash if there is one), an array runs as it is. */
export type Command = string | readonly string[];

/** How to run a command to its end. */
export interface ExecOptions {
  /** Working directory, absolute or relative to the workdir. By default, the workdir. */
  cwd?: string;
  /** Added to the sandbox's environment. */
  env?: Record<string, string>;
  /** `uid[:gid]` or a name in the image. By default, the sandbox's user. */
  user?: string;
  /** Its input. By default, empty and closed. A stream is read as fast as the command reads. */
  stdin?: string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>;
  /**
   * Kills the whole process tree after this long. 0 or `Infinity` means never.
   *
   * @default 300_000
   */
  timeoutMs?: number;
  /**
   * Time between TERM and KILL.
   *
   * @default 2_000
   */
  killGraceMs?: number;
  /**
   * The most output retained per stream; of longer output, head and tail.
   *
   * @default 1_048_576
   */
  maxOutputBytes?: number;
  /**
   * Called with each piece of output as it arrives. A slow callback, or a slow promise, slows the command; one that throws
   * or rejects kills it.
   */
  onStdout?: OutputCallback;
  /** The same for standard error. */
  onStderr?: OutputCallback;
  /**
   * Rejects with `COMMAND_FAILED` when the command fails: an exit code other than 0, a signal or a timeout. The error's
   * `details` hold the {@link ExecResult}.
   *
   * @default false
   */
  reject?: boolean;
  /** Kills the whole process tree; the call rejects with `signal.reason` once all of it has ended. */
  signal?: AbortSignal;
}

/** How to start a command that keeps running. */
export interface SpawnOptions extends Omit<ExecOptions, 'stdin' | 'reject'> {
  /** Kills the whole process tree after this long. No limit by default. */
  timeoutMs?: number;
  /**
   * Keeps it running when this program ends; it stays readable by its `execId`.
   *
   * @default false
   */
  detached?: boolean;
  /**
   * Also writes its whole output to a file in the sandbox, `process.logFile`. `true` means at most 64 MiB.
   *
   * @default false
   */
  logFile?: boolean | LogFileOptions;
}

/** How much of a process's output its log file holds. */
export interface LogFileOptions {
  /** Output after this many bytes is not written. */
  maxBytes: number;
}

/** How a command ended. */
export interface ExecResult {
  /** Its id, for `sandbox.process()`. */
  execId: string;
  /** 128+n when a signal ended it, as in shells. */
  exitCode: number;
  /** The signal that ended it, such as `SIGKILL`; `null` if none did. */
  signal: string | null;
  /** Its output, up to `maxOutputBytes`; of longer output, head and tail. */
  stdout: string;
  /** The same for standard error. */
  stderr: string;
  /** From its start to the end of everything it started. */
  durationMs: number;
  /** Whether `timeoutMs` ended it. */
  timedOut: boolean;
  /** Whether the kernel killed it because the sandbox ran out of memory. */
  oomKilled: boolean;
  /** Processes of its tree that did not end by themselves and were killed with it. */
  killed: { pid: number; command: string }[];
  /** Whether the middle of a stream is missing, because it was longer than `maxOutputBytes`. */
  truncated: { stdout: boolean; stderr: boolean };
  /** `exitCode === 0` */
  ok: boolean;
}
