/** Compute mode: what is asked for, and what comes of it. */
import type { ExecResult, Limits, NetworkPolicy } from './options';

/** Lists of packages, each as its installer takes it: `pandas==2.2.3`, `left-pad@1`, `jq`. */
export interface Packages {
  /** Of Python’s index. */
  pip?: string[];
  /** Of npm’s registry. */
  npm?: string[];
  /** Of the image’s distribution. */
  apt?: string[];
}

/** One run of a program in a sandbox of its own, which is gone afterwards. */
export interface RunRequest {
  /** What runs the code; it also chooses the image where none is given. `python` unless told. */
  runtime?: 'python' | 'node' | 'bash';
  /** Any image that has the runtime. */
  image?: string;
  /** The program itself. */
  code: string;
  /** What the program finds in `sys.argv`, `process.argv` or `$1`. */
  args?: string[];
  /** For the program. */
  env?: Record<string, string>;
  /** Written under the workdir before the code runs. */
  files?: Record<string, string | Uint8Array>;
  /** Installed once, and cached. */
  packages?: Packages;
  /** What it may use; within the policy’s `maxLimits`. */
  limits?: Limits;
  /** Off unless told. */
  network?: boolean | NetworkPolicy;
  /** Globs under the workdir: what to bring back of what the code wrote. */
  artifacts?: string[];
  /** Of the code. 2 min; 0 for none. */
  timeoutMs?: number;
  /** 200 000 of each stream, head and tail kept. */
  maxOutputBytes?: number;
  /** 10 000 000 for each artifact; a larger one is named, and left where it is. */
  maxArtifactBytes?: number;
  /** 100; those beyond are named only. */
  maxArtifacts?: number;
  /** What the program prints, as it prints it. A callback that is slow, or whose promise is, slows it; one that throws ends it. */
  onStdout?: (text: string) => void;
  /** The same for its errors. */
  onStderr?: (text: string) => void;
  /** Gives it up: the call rejects with the signal's own reason. */
  signal?: AbortSignal;
}

/** A file that a run left. */
export interface Artifact {
  /** Under the workdir. */
  path: string;
  /** Also of one that was left out. */
  sizeBytes: number;
  /** `null` when it was left out. */
  content: Uint8Array | null;
  /** Why there is no content. */
  omitted?: 'too large' | 'too many';
}

/** A part of a run, and how long it took. */
export interface RunPhase {
  /** In the order in which they come. */
  name: 'connect' | 'prepare_files' | 'exec' | 'collect_artifacts' | 'destroy';
  /** By the host’s clock. */
  durationMs: number;
}

/** What came of a run. */
export interface RunResult extends ExecResult {
  /** What ran the code. */
  runtime: string;
  /** Resolved: `python:3.11-slim`. */
  image: string;
  /** What the globs named of what is there afterwards. */
  artifacts: Artifact[];
  /** Where the time went. */
  phases: RunPhase[];
}
