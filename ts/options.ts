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
  /** Where sandboxes run. `auto` is Docker where an engine answers. */
  backend?: 'auto' | 'docker';
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
  };
  /** A sandbox ends after so long without a request and without output; 30 minutes. 0 means never. */
  idleTimeoutMs?: number;
  /** A sandbox ends after so long in any case; 4 hours. 0 means never. */
  maxLifetimeMs?: number;
  /** A sandbox ends after so long with no program linked to it; 5 minutes. 0 means never. */
  orphanTimeoutMs?: number;
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
  /** Its input; empty and closed unless told. */
  stdin?: string | Uint8Array;
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

export type SandboxState = 'running' | 'paused' | 'stopped';

/** A sandbox as the engine records it. */
export interface SandboxInfo {
  id: string;
  key: string;
  image: string;
  state: SandboxState;
  workdir: string;
  createdAt: Date;
  /** The end of its maximum lifetime. */
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
  abilities: Record<string, boolean | string>;
  /** Which limits really apply. */
  limits: Record<keyof Limits, 'enforced' | 'watched' | 'none'>;
}
