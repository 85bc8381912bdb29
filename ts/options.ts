import type { Logger } from './logger';
import type { Packages } from './run';
import type { ObjectStoreOptions } from './store';

export type { EngineAttempt, EngineInfo } from './engine-info';
export type { Artifact, Packages, RunPhase, RunRequest, RunResult } from './run';
export type { ObjectStoreOptions, PublishOptions, StageOptions } from './store';

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
  /** As `network: true` or `false`. */
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
  /** What it may use; within the policy’s `maxLimits`. */
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
  /** Told of each step while the image is pulled. */
  onPullProgress?: (progress: PullProgress) => void;
  /** For your own use; `list()` gives them back. */
  labels?: Record<string, string>;
  /** How long opening may take; as long as it needs unless told. */
  timeoutMs?: number;
  /** Gives it up: the call rejects with the signal's own reason. */
  signal?: AbortSignal;
}

/** A step of a pull. */
export interface PullProgress {
  /** Resolved: `python:3.11-slim`. */
  image: string;
  /** Which layer the step is about. */
  layer?: string;
  /** In the engine’s own words. */
  status: string;
  /** Of the layer so far. */
  currentBytes?: number;
  /** Of the whole layer, where that is known. */
  totalBytes?: number;
}

/** How to pull. */
export interface PullOptions {
  /** Gives it up: the call rejects with the signal's own reason. */
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
  /** Each piece of output as it comes. A callback that is slow, or whose promise is, slows the command; one that throws ends it. */
  onStdout?: (text: string) => void;
  /** The same for standard error. */
  onStderr?: (text: string) => void;
  /** Ends the whole process tree; the call rejects with the signal's reason when nothing of it is left. */
  signal?: AbortSignal;
}

/** How to start a command that goes on by itself. It has no time limit unless told. */
export interface SpawnOptions extends Omit<ExecOptions, 'stdin'> {
  /** Then the whole process tree is ended; never unless told. */
  timeoutMs?: number;
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
  /** The workdir unless told; relative to it. */
  cwd?: string;
  /** Over the sandbox's own environment; `TERM` is `xterm-256color` unless told. */
  env?: Record<string, string>;
  /** `uid[:gid]` or a name in the image; the sandbox's own user unless told. */
  user?: string;
  /** Keep it when this program goes away. */
  detached?: boolean;
  /** Comes back to a terminal that was opened before, also by another program; all else is ignored then. */
  execId?: string;
  /** Gives it up: the call rejects with the signal's own reason. */
  signal?: AbortSignal;
}

/** A port of the sandbox on the host's own loopback. */
export interface PortForward extends AsyncDisposable {
  /** The port on the host. */
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
  /** The most that it ever used. */
  memoryPeakBytes: number;
  /** Processes and threads. */
  pids: number;
  /** From disk so far. */
  ioReadBytes: number;
  /** To disk so far. */
  ioWriteBytes: number;
  /** Disk space under the workdir. */
  workspaceBytes: number;
  /** Kills for memory so far. */
  oomKills: number;
}

/** How a command went. */
export interface ExecResult {
  /** Its number, for `sandbox.process()`. */
  execId: string;
  /** 128+n when a signal ended it, as shells say it. */
  exitCode: number;
  /** The signal that ended it: `SIGKILL`; else `null`. */
  signal: string | null;
  /** Head and tail of what it printed, up to `maxOutputBytes`. */
  stdout: string;
  /** The same of standard error. */
  stderr: string;
  /** From its start to the end of all that it started. */
  durationMs: number;
  /** Whether `timeoutMs` ended it. */
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
  /** Which of the two it was printed to. */
  stream: 'stdout' | 'stderr';
  /** The bytes, exactly. */
  data: Uint8Array;
  /** The same as text; never cut inside a character. */
  text: string;
}

/** A process that was started in a sandbox, running or ended. */
export interface ProcessInfo {
  /** Its number, for `sandbox.process()`. */
  execId: string;
  /** Its pid in the sandbox. */
  pid: number;
  /** As it was given. */
  command: string;
  /** By the host’s clock. */
  startedAt: Date;
  /** `null` while it runs. */
  exitCode: number | null;
}

/** `warm` is ready and nobody's yet; of one that is `stopped`, only the persistent workspace is there. */
export type SandboxState = 'warm' | 'running' | 'paused' | 'stopped';

/** A sandbox as the engine records it. */
export interface SandboxInfo {
  /** `sbx_…` */
  id: string;
  /** `workflow:wf_abc123:default` */
  key: string;
  /** Resolved: `python:3.11-slim`. */
  image: string;
  /** As the engine says. */
  state: SandboxState;
  /** Where commands run and relative paths start. */
  workdir: string;
  /** By the clock of the program that made it. */
  createdAt: Date;
  /** When it ends if nothing happens in it; `null` when never. */
  expiresAt: Date | null;
  /** What it may use. */
  limits: Limits;
  /** Whether it has network. */
  network: boolean;
  /** Those of `open()`. */
  labels: Record<string, string>;
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
