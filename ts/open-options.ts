/** What `open()` takes: which session, and what its sandbox is when it is created. */
import type { ProgressCallback } from './callbacks';
import type { Command } from './command';
import type { PullProgress } from './pull';
import type { Packages } from './run';

/** Exactly one of a workflow run, an agent run or a user. */
export type Scope = { workflow: string } | { agent: string } | { user: string };

/** Who shares a sandbox: the workflow wins over the agent, the agent over the user. */
export interface SessionScope {
  /** The id of a workflow run. */
  workflow?: string;
  /** The id of an agent run. */
  agent?: string;
  /** The id of a user. */
  user?: string;
}

/** What a sandbox may use at most. */
export interface Limits {
  /**
   * Processors; never more than the engine has.
   *
   * @default 2
   */
  cpus?: number;
  /**
   * Memory, without swap.
   *
   * @default 2048
   */
  memoryMb?: number;
  /**
   * Processes and threads.
   *
   * @default 512
   */
  pids?: number;
  /** Disk space under the workdir. It is watched: a command that exceeds it is killed. No limit by default. */
  workspaceMb?: number;
  /** Open files per process. By default, the engine's own limit. */
  openFiles?: number;
}

/** Network access of a sandbox, beyond on and off. */
export interface NetworkPolicy {
  /** As `network: true` or `false`. */
  enabled: boolean;
}

/** Which sandbox, and what it is like if it is created. */
export interface OpenOptions {
  /** Who shares it. By default, only this manager. */
  scope?: SessionScope;
  /**
   * Name within the scope; `isolated` never shares.
   *
   * @default 'default'
   */
  session?: 'default' | 'isolated' | (string & {});
  /**
   * `linux` (also `bash`, `shell`), `python`, `node`, or any image.
   *
   * @default 'linux'
   */
  image?: string;
  /**
   * Where commands run and relative paths start.
   *
   * @default '/workspace'
   */
  workdir?: string;
  /** Environment of every command. */
  env?: Record<string, string>;
  /** The command user: `uid[:gid]` or a name in the image. By default, the image's own user. */
  user?: string;
  /** What it may use, within the policy's `maxLimits`. */
  limits?: Limits;
  /**
   * Network access.
   *
   * @default false
   */
  network?: boolean | NetworkPolicy;
  /**
   * Makes everything read-only except the workdir and `/tmp`, which are held in memory.
   *
   * @default false
   */
  readOnlyRoot?: boolean;
  /**
   * Puts the workdir on a volume of the session's own that outlives `close()`: a persistent workspace.
   *
   * @default false
   */
  persist?: boolean;
  /** Installed once per image and list, with network access, and cached; later sandboxes start with them at once. */
  packages?: Packages;
  /** Written into a new sandbox before `open()` resolves. */
  files?: Record<string, string | Uint8Array>;
  /** Run once in a new sandbox before `open()` resolves. */
  init?: Command;
  /**
   * When to pull the image.
   *
   * @default 'missing'
   */
  pull?: 'missing' | 'always' | 'never';
  /** Called for each step of a pull, one call at a time. One that throws or rejects aborts `open()`. */
  onPullProgress?: ProgressCallback<PullProgress>;
  /** For your own use; `list()` returns them. */
  labels?: Record<string, string>;
  /** How long opening may take. No limit by default. */
  timeoutMs?: number;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}
