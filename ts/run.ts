/** Compute mode: the request and the result of a run. */
import type { OutputCallback } from './callbacks';
import type { ExecResult } from './command';
import type { Limits, NetworkPolicy } from './open-options';

/** Packages to install, each as its installer takes it: `pandas==2.2.3`, `left-pad@1`, `jq`. */
export interface Packages {
  /** From Python's package index. */
  pip?: string[];
  /** From the npm registry. */
  npm?: string[];
  /** From the image's distribution. */
  apt?: string[];
}

/** One run of a program in a sandbox of its own, which is removed afterwards. */
export interface RunRequest {
  /**
   * What runs the code. It also selects the image if none is given.
   *
   * @default 'python'
   */
  runtime?: 'python' | 'node' | 'bash';
  /** Any image that has the runtime. */
  image?: string;
  /** The source of the program. */
  code: string;
  /** Its arguments: `sys.argv`, `process.argv` or `$1`. */
  args?: string[];
  /** Environment of the program. */
  env?: Record<string, string>;
  /** Written under the workdir before the code runs. */
  files?: Record<string, string | Uint8Array>;
  /** Installed once, and cached. */
  packages?: Packages;
  /** What it may use, within the policy's `maxLimits`. */
  limits?: Limits;
  /**
   * Network access.
   *
   * @default false
   */
  network?: boolean | NetworkPolicy;
  /** Globs under the workdir: which files that the code wrote to return. */
  artifacts?: string[];
  /**
   * Kills the program after this long. 0 means never.
   *
   * @default 120_000
   */
  timeoutMs?: number;
  /**
   * The most output retained per stream; of longer output, head and tail.
   *
   * @default 200_000
   */
  maxOutputBytes?: number;
  /**
   * The largest artifact to return; larger ones are listed without content.
   *
   * @default 10_000_000
   */
  maxArtifactBytes?: number;
  /**
   * The most artifacts to return; the others are listed without content.
   *
   * @default 100
   */
  maxArtifacts?: number;
  /**
   * Called with each piece of output as it arrives. A slow callback, or a slow promise, slows the program; one that throws
   * or rejects kills it.
   */
  onStdout?: OutputCallback;
  /** The same for standard error. */
  onStderr?: OutputCallback;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** A file that a run wrote. */
export interface Artifact {
  /** Relative to the workdir. */
  path: string;
  /** Also if the content was omitted. */
  sizeBytes: number;
  /** `null` if it was omitted. */
  content: Uint8Array | null;
  /** Why there is no content. */
  omitted?: 'too large' | 'too many';
}

/** A phase of a run. */
export interface RunPhase {
  /** Which phase, in order of execution. */
  name: 'connect' | 'prepare_files' | 'exec' | 'collect_artifacts' | 'destroy';
  /** By the host's clock. */
  durationMs: number;
}

/** The result of a run. */
export interface RunResult extends ExecResult {
  /** What ran the code. */
  runtime: string;
  /** Resolved: `python:3.11-slim`. */
  image: string;
  /** The files that match the globs. */
  artifacts: Artifact[];
  /** How long each phase took. */
  phases: RunPhase[];
}
