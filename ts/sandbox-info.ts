/** A sandbox as the engine records it, and what it uses. */
import type { Limits, Scope } from './open-options';

/** `warm`: ready, and not in use yet. `stopped`: only its persistent workspace is left. */
export type SandboxState = 'warm' | 'running' | 'paused' | 'stopped';

/** Which sandboxes to list. */
export interface SandboxFilter {
  /** Only those of this scope. */
  scope?: Scope;
  /** Only those in this state. */
  state?: SandboxState;
}

/** A sandbox as the engine records it. */
export interface SandboxInfo {
  /** `sbx_…` */
  id: string;
  /** `workflow:wf_abc123:default` */
  key: string;
  /** The session's name within its scope: `default`, the name given to `open()`, or a generated one for an isolated session. */
  session: string;
  /** Whether the session is never shared: it was opened as `isolated`, or by such a name. */
  isolated: boolean;
  /** Resolved: `python:3.11-slim`. */
  image: string;
  /** As the engine reports it. */
  state: SandboxState;
  /** Where commands run and relative paths start. */
  workdir: string;
  /** By the clock of the program that created it. */
  createdAt: Date;
  /** When it ends if nothing happens in it; `null` for never. */
  expiresAt: Date | null;
  /** What it may use. */
  limits: Limits;
  /** Whether it has network access. */
  network: boolean;
  /** Those given to `open()`. */
  labels: Record<string, string>;
}

/** What a sandbox uses. */
export interface SandboxStats {
  /** Processor time so far. */
  cpuMs: number;
  /** Memory in use, without caches that the kernel could drop at any time. */
  memoryBytes: number;
  /** The most memory it ever used. */
  memoryPeakBytes: number;
  /** Processes and threads. */
  pids: number;
  /** Read from disk so far. */
  ioReadBytes: number;
  /** Written to disk so far. */
  ioWriteBytes: number;
  /** Disk space used under the workdir. */
  workspaceBytes: number;
  /** Processes killed for lack of memory so far. */
  oomKills: number;
}
