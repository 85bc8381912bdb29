/** What an agent's author asked for, in the terms of this package. */
import type { Limits, Packages } from '../options';

/** A checked configuration: what was left out has its default, or is left out. */
export interface SandboxConfig {
  /** `compute`: each call of `sandbox_run` is a sandbox of its own. `code`: a session that stays. */
  mode: 'compute' | 'code';
  /** `python`, `node` or `bash`; in code mode also `linux`, or any image. */
  runtime: string;
  /** Instead of the runtime's own image. */
  image?: string;
  /** The session's name within its scope. */
  session?: 'default' | 'isolated' | (string & {});
  /** Who shares the session: `agent` keeps it to one agent run, also within a workflow. */
  share?: 'workflow' | 'agent';
  /** What a sandbox may use. */
  limits: Pick<Limits, 'cpus' | 'memoryMb' | 'workspaceMb'>;
  /** A session ends after so long without a call. */
  idleTimeoutMs?: number;
  /** No file that is written may be longer. */
  maxFileBytes?: number;
  /** No more files may be written. */
  maxFiles?: number;
  /** Off unless told. */
  network: boolean;
  /** Of one command, or of one run. */
  timeoutMs?: number;
  /** Of each stream in a result. */
  maxOutputBytes?: number;
  /** To be installed first. */
  packages: Packages;
}
