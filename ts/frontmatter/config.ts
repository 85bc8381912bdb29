/** The sandbox configuration of an agent, in the terms of this package. */
import type { Limits, Packages } from '../options';

/** A checked configuration. Missing fields have their default, or are absent. */
export interface SandboxConfig {
  /** `compute`: each call of `sandbox_run` has its own sandbox. `code`: a session that stays between calls. */
  mode: 'compute' | 'code';
  /** `python`, `node` or `bash`; in code mode also `linux`, or any image. */
  runtime: string;
  /** Replaces the image of the runtime. */
  image?: string;
  /** The session's name within its scope. */
  session?: 'default' | 'isolated' | (string & {});
  /** Who shares the session: `agent` keeps it to one agent run, also within a workflow. */
  share?: 'workflow' | 'agent';
  /** What a sandbox may use. */
  limits: Pick<Limits, 'cpus' | 'memoryMb' | 'workspaceMb'>;
  /** A session ends after this time without a call. */
  idleTimeoutMs?: number;
  /** The maximum size of a written file. */
  maxFileBytes?: number;
  /** The maximum number of written files. */
  maxFiles?: number;
  /**
   * Whether sandboxes have network.
   *
   * @default false
   */
  network: boolean;
  /** The time limit of one command or run. */
  timeoutMs?: number;
  /** The maximum size of each stream in a result. */
  maxOutputBytes?: number;
  /** Packages to install first. */
  packages: Packages;
}
