import type { Logger } from './logger';

/** Which sessions: exactly one of a workflow run, an agent run or a user. */
export type Scope = { workflow: string } | { agent: string } | { user: string };

/** A command: a string goes through the sandbox's shell (bash where there is one), an array is run as it is. */
export type Command = string | readonly string[];

/** What a sandbox may use at most. */
export interface Limits {
  /** Processors; 2 unless told, and never more than the engine has. */
  cpus?: number;
  /** Memory without swap; 2048 unless told. */
  memoryMb?: number;
  /** Processes and threads; 512 unless told. */
  pids?: number;
  /** Disk space under the workdir, which is watched: a command that writes beyond it is ended. None unless told. */
  workspaceMb?: number;
  /** Open files per process; the engine's own default unless told. */
  openFiles?: number;
}

/** Network for a sandbox beyond plain on and off. */
export interface NetworkPolicy {
  enabled: boolean;
}

/** PEM files for an engine on `tcp://` with TLS. */
export interface TlsOptions {
  /** Path of the certificate authority. */
  ca: string;
  /** Path of the client certificate. */
  cert: string;
  /** Path of the client key. */
  key: string;
}

/** Options of a {@link SandboxManager}. */
export interface SandboxManagerOptions {
  /**
   * Where sandboxes run: in an engine's containers, or in this machine's own namespaces, which needs Linux and nothing
   * installed. `auto`, which is the default, is Docker where an engine answers, else namespaces. `COFFERDAM_BACKEND` says it
   * for programs that do not.
   */
  backend?: 'auto' | 'docker' | 'namespaces';
  /** How to reach the engine; found as the docker command finds it unless told. */
  docker?: { host?: string; tls?: TlsOptions; runtime?: string };
  /** For every `open()` of this manager. */
  defaults?: OpenOptions;
  /** Ceilings that no `open()` may pass. */
  policy?: {
    /** Exact names, shortcuts or globs; any image when absent. */
    allowedImages?: string[];
    maxLimits?: Limits;
    /** Whether a caller may ask for network at all; `allow` unless told. */
    network?: 'deny' | 'allow';
    /**
     * Paths in the sandbox that the file API refuses with `PATH_BLOCKED`, each with all below it, by whatever link or dots
     * they are reached: absolute, or globs that begin with `**`. Commands are not held by it.
     */
    blockedPaths?: string[];
    /** No file that is written or carried may be longer: `LIMIT_EXCEEDED`. */
    maxFileBytes?: number;
    /** No call may write or carry more files: `LIMIT_EXCEEDED`. */
    maxFiles?: number;
  };
  /**
   * Image or shortcut → how many sandboxes to keep ready, as an `open()` with the defaults and this image would make
   * them. An `open()` that asks for the same image, limits and network takes one in milliseconds.
   */
  warm?: Record<string, number>;
  /**
   * A sandbox ends after so long without a request and without output; 30 minutes, or `COFFERDAM_IDLE_TIMEOUT`. 0 means
   * never.
   */
  idleTimeoutMs?: number;
  /** A sandbox ends after so long in any case; 4 hours, or `COFFERDAM_MAX_LIFETIME`. 0 means never. */
  maxLifetimeMs?: number;
  /**
   * A sandbox ends after so long with no program linked to it; 5 minutes, or `COFFERDAM_ORPHAN_TIMEOUT`. 0 means never.
   */
  orphanTimeoutMs?: number;
  /** Where `sandbox.stage()` reads and `sandbox.publish()` writes. Reached on first use; no sandbox ever sees it. */
  store?: ObjectStoreOptions;
  /** Told what happens: `console`, a pino logger, or any with their methods. See `docs/observability.md`. */
  logger?: Logger;
  /**
   * Spans and metrics where the program has `@opentelemetry/api`; `false` for none. `details` adds commands, paths and the
   * messages of errors to spans; without it there are only ids, names, sizes and codes.
   */
  telemetry?: false | { details?: boolean };
}

/**
 * An object store. With `prefix`, all keys are under it. For S3, what is left out comes from the usual `AWS_*` environment
 * variables; an endpoint without TLS is used only when it is named as `http://`.
 *
 * @example
 * ```ts
 * new SandboxManager({ store: { type: 'nats', servers: 'nats://localhost:4222', bucket: 'files', create: true } });
 * ```
 */
export type ObjectStoreOptions =
  | {
      /** A bucket of NATS JetStream's object store. */
      type: 'nats';
      servers: string | string[];
      bucket: string;
      /** Make the bucket when it is missing. */
      create?: boolean;
      user?: string;
      password?: string;
      token?: string;
      /** Path of a `.creds` file. */
      credentialsFile?: string;
      prefix?: string;
    }
  | {
      /** A bucket of S3, or of what speaks as it does. */
      type: 's3';
      bucket: string;
      region?: string;
      endpoint?: string;
      accessKeyId?: string;
      secretAccessKey?: string;
      sessionToken?: string;
      prefix?: string;
    }
  | {
      /** A folder of the host, which must be there. */
      type: 'folder';
      path: string;
      prefix?: string;
    }
  | {
      /** The manager's own memory: for tests. */
      type: 'memory';
    };

/** How to bring an object into a sandbox. */
export interface StageOptions {
  /** What its SHA-256 must be, in hexadecimal. Where it is not, no file appears. */
  sha256?: string;
  /** Permission bits; those of the file it replaces, or 0644, unless told. */
  mode?: number;
  /** False refuses to replace a file, with `FILE_EXISTS`. */
  overwrite?: boolean;
  /** Whom it belongs to; whom commands run as unless told. */
  user?: string;
  /** A larger object rejects with `LIMIT_EXCEEDED`. */
  maxBytes?: number;
  signal?: AbortSignal;
}

/** How to store a file of a sandbox. */
export interface PublishOptions {
  /** A larger file rejects with `LIMIT_EXCEEDED`. */
  maxBytes?: number;
  signal?: AbortSignal;
}

/** Which sandbox, and what it shall be if it is made. */
export interface OpenOptions {
  /** Who shares it: the workflow wins over the agent, the agent over the user. Without, it is this manager's own. */
  scope?: { workflow?: string; agent?: string; user?: string };
  /** Name within the scope; `isolated` never shares. */
  session?: 'default' | 'isolated' | (string & {});
  /** `linux` (also `bash`, `shell`), `python`, `node`, or any image. */
  image?: string;
  /** Where commands run and relative paths start; `/workspace`. */
  workdir?: string;
  /** For every command. */
  env?: Record<string, string>;
  /** `uid[:gid]` or a name in the image; the image's own user unless told. */
  user?: string;
  limits?: Limits;
  /** Off unless told. */
  network?: boolean | NetworkPolicy;
  /** Only the workdir and `/tmp` may be written, and both are kept in memory. */
  readOnlyRoot?: boolean;
  /** Keep the workdir in a volume of the session's own, which outlives `close()`. */
  persist?: boolean;
  /** Installed once per image and list, with network, and cached; sandboxes start with them at once. */
  packages?: Packages;
  /** Written into a new sandbox before `open()` resolves. */
  files?: Record<string, string | Uint8Array>;
  /** Run once in a new sandbox before `open()` resolves. */
  init?: Command;
  /** When to pull the image; `missing` unless told. */
  pull?: 'missing' | 'always' | 'never';
  onPullProgress?: (progress: PullProgress) => void;
  /** For your own use; `list()` gives them back. */
  labels?: Record<string, string>;
  /** How long opening may take; as long as it needs unless told. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** A step of a pull. */
export interface PullProgress {
  image: string;
  layer?: string;
  status: string;
  currentBytes?: number;
  totalBytes?: number;
}

export interface PullOptions {
  signal?: AbortSignal;
}

/** How to run a command to its end. */
export interface ExecOptions {
  /** The workdir unless told; relative to it. */
  cwd?: string;
  /** Over the sandbox's own environment. */
  env?: Record<string, string>;
  /** `uid[:gid]` or a name in the image; the sandbox's own user unless told. */
  user?: string;
  /** Its input; empty and closed unless told. A stream is read as fast as the command reads. */
  stdin?: string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>;
  /** 5 minutes; then the whole process tree is ended. 0 or `Infinity` means never. */
  timeoutMs?: number;
  /** 2 seconds between TERM and KILL. */
  killGraceMs?: number;
  /** 1 MiB per stream, of which head and tail are kept. */
  maxOutputBytes?: number;
  onStdout?: (text: string) => void;
  onStderr?: (text: string) => void;
  /** Ends the whole process tree; the call rejects with the signal's reason when nothing of it is left. */
  signal?: AbortSignal;
}

/** How to start a command that goes on by itself. It has no time limit unless told. */
export interface SpawnOptions extends Omit<ExecOptions, 'stdin'> {
  /** Keep it when this program goes away; it stays readable by its `execId`. */
  detached?: boolean;
  /** Its whole output also goes to a file in the sandbox, `process.logFile`: at most `maxBytes`, 64 MiB unless told. */
  logFile?: boolean | { maxBytes: number };
}

/** How to open a terminal. */
export interface TerminalOptions {
  /** The user's own shell unless told: `$SHELL`, the user's entry in `/etc/passwd`, bash, sh. */
  command?: Command;
  /** 80 unless told. */
  cols?: number;
  /** 24 unless told. */
  rows?: number;
  cwd?: string;
  /** Over the sandbox's own environment; `TERM` is `xterm-256color` unless told. */
  env?: Record<string, string>;
  /** `uid[:gid]` or a name in the image; the sandbox's own user unless told. */
  user?: string;
  /** Keep it when this program goes away. */
  detached?: boolean;
  /** Comes back to a terminal that was opened before, also by another program; all else is ignored then. */
  execId?: string;
  signal?: AbortSignal;
}

/** A port of the sandbox on the host's own loopback. */
export interface PortForward extends AsyncDisposable {
  readonly hostPort: number;
  /** `http://127.0.0.1:<hostPort>` */
  readonly url: string;
  /** Ends it with all its connections. */
  close(): Promise<void>;
}

/** What a sandbox uses. */
export interface SandboxStats {
  /** Processor time so far. */
  cpuMs: number;
  /** Without what the kernel could drop at any time. */
  memoryBytes: number;
  memoryPeakBytes: number;
  /** Processes and threads. */
  pids: number;
  /** From and to disk so far. */
  ioReadBytes: number;
  ioWriteBytes: number;
  /** Disk space under the workdir. */
  workspaceBytes: number;
  /** Kills for memory so far. */
  oomKills: number;
}

/** How a command went. */
export interface ExecResult {
  execId: string;
  /** 128+n when a signal ended it, as shells say it. */
  exitCode: number;
  signal: string | null;
  stdout: string;
  stderr: string;
  durationMs: number;
  timedOut: boolean;
  /** The kernel killed it because the sandbox ran out of memory. */
  oomKilled: boolean;
  /** What of its process tree did not end by itself and was killed with it. */
  killed: { pid: number; command: string }[];
  /** Whether the middle of a stream is missing, because it was longer than `maxOutputBytes`. */
  truncated: { stdout: boolean; stderr: boolean };
  /** `exitCode === 0` */
  ok: boolean;
}

/** A piece of a process's output. */
export interface OutputChunk {
  /** Starts at 1 and rises by one per chunk over both streams. */
  seq: number;
  stream: 'stdout' | 'stderr';
  /** The bytes, exactly. */
  data: Uint8Array;
  /** The same as text; never cut inside a character. */
  text: string;
}

/** A process that was started in a sandbox, running or ended. */
export interface ProcessInfo {
  execId: string;
  pid: number;
  command: string;
  startedAt: Date;
  /** `null` while it runs. */
  exitCode: number | null;
}

/** Lists of packages, each as its installer takes it: `pandas==2.2.3`, `left-pad@1`, `jq`. */
export interface Packages {
  pip?: string[];
  npm?: string[];
  apt?: string[];
}

/** One run of a program in a sandbox of its own, which is gone afterwards. */
export interface RunRequest {
  /** What runs the code; it also chooses the image where none is given. `python` unless told. */
  runtime?: 'python' | 'node' | 'bash';
  /** Any image that has the runtime. */
  image?: string;
  code: string;
  args?: string[];
  env?: Record<string, string>;
  /** Written under the workdir before the code runs. */
  files?: Record<string, string | Uint8Array>;
  /** Installed once, and cached. */
  packages?: Packages;
  limits?: Limits;
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
  signal?: AbortSignal;
}

/** A file that a run left. */
export interface Artifact {
  /** Under the workdir. */
  path: string;
  sizeBytes: number;
  /** `null` when it was left out. */
  content: Uint8Array | null;
  omitted?: 'too large' | 'too many';
}

/** A part of a run, and how long it took. */
export interface RunPhase {
  name: 'connect' | 'prepare_files' | 'exec' | 'collect_artifacts' | 'destroy';
  durationMs: number;
}

/** What came of a run. */
export interface RunResult extends ExecResult {
  runtime: string;
  /** Resolved: `python:3.11-slim`. */
  image: string;
  artifacts: Artifact[];
  phases: RunPhase[];
}

/** `warm` is ready and nobody's yet; of one that is `stopped`, only the persistent workspace is there. */
export type SandboxState = 'warm' | 'running' | 'paused' | 'stopped';

/** A sandbox as the engine records it. */
export interface SandboxInfo {
  id: string;
  key: string;
  image: string;
  state: SandboxState;
  workdir: string;
  createdAt: Date;
  /** When it ends if nothing happens in it; `null` when never. */
  expiresAt: Date | null;
  limits: Limits;
  network: boolean;
  labels: Record<string, string>;
}

/** What sandboxes run on, and what that can and cannot do here. */
export interface EngineInfo {
  backend: string;
  version: string;
  apiVersion?: string;
  /** How well sandboxes are kept apart, where that depends on the machine. */
  tier?: string;
  abilities: Record<string, boolean | string>;
  /** Which limits really apply. */
  limits: Record<keyof Limits, 'enforced' | 'watched' | 'none'>;
}

/** What to clean up. */
export interface PruneOptions {
  /** Persistent workspaces too, that no sandbox uses at the moment: their data is gone then. */
  volumes?: boolean;
  /** All cached packages too, that no sandbox uses at the moment. */
  packages?: boolean;
  /** Only what is at least so old. */
  olderThanMs?: number;
  /** Tell what would be removed, and do nothing. */
  dryRun?: boolean;
}

/** What was cleaned up. */
export interface PruneReport {
  /** Dead containers, by id. */
  sandboxes: string[];
  /** Volumes, by name. */
  volumes: string[];
  /** Cached packages, by the name of their image. */
  packages: string[];
}

/** What happened, and to which sandbox. Each type has more of its own; see `docs/sessions.md`. */
export type SandboxEvent = {
  type:
    | 'opened'
    | 'resumed'
    | 'warming'
    | 'expiring'
    | 'closed'
    | 'lost'
    | 'exec-started'
    | 'exec-finished'
    | 'oom'
    | 'pull';
  at: Date;
  sandboxId?: string;
  key?: string;
} & Record<string, unknown>;
