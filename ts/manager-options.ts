/** What a manager is made with: where sandboxes run, what they may do, and what is recorded of them. */
import type { Logger } from './logger';
import type { Limits, OpenOptions } from './open-options';
import type { ObjectStoreOptions } from './store';

/** PEM files for an engine on `tcp://` with TLS. */
export interface TlsOptions {
  /** Path of the certificate authority. */
  ca: string;
  /** Path of the client certificate. */
  cert: string;
  /** Path of the client key. */
  key: string;
}

/** How to reach a Docker engine. */
export interface DockerOptions {
  /** Its address, such as `unix:///var/run/docker.sock`. By default, found as the docker command finds it. */
  host?: string;
  /** For an engine on `tcp://` with TLS. */
  tls?: TlsOptions;
  /** The OCI runtime of containers, such as `runsc`. By default, the engine's own. */
  runtime?: string;
}

/** Limits that no `open()` or `run()` of a manager may exceed. */
export interface SandboxPolicy {
  /** Exact names, shortcuts or globs. By default, any image. */
  allowedImages?: string[];
  /** The most that `limits` may ask for. */
  maxLimits?: Limits;
  /**
   * Whether a caller may ask for network access at all.
   *
   * @default 'allow'
   */
  network?: 'deny' | 'allow';
  /**
   * Paths in the sandbox that the file API refuses with `PATH_BLOCKED`, each with everything below it, through whatever
   * links or dots it is reached. Absolute paths, or globs that begin with `**`. Commands are not affected.
   */
  blockedPaths?: string[];
  /** The largest file that may be written or transferred; a larger one rejects with `LIMIT_EXCEEDED`. */
  maxFileBytes?: number;
  /** The most files that one call may write or transfer; more reject with `LIMIT_EXCEEDED`. */
  maxFiles?: number;
}

/** What spans contain. */
export interface TelemetryOptions {
  /**
   * Adds commands, paths and error messages; without it there are only ids, names, sizes and codes.
   *
   * @default false
   */
  details?: boolean;
}

/** Options of a {@link SandboxManager}. */
export interface SandboxManagerOptions {
  /**
   * Where sandboxes run: in an engine's containers, or in namespaces of this machine's own kernel, which needs Linux and
   * nothing installed. `auto` means Docker if an engine answers, else namespaces. Without this option,
   * `COFFERDAM_BACKEND` decides.
   *
   * @default 'auto'
   */
  backend?: 'auto' | 'docker' | 'namespaces';
  /** How to reach the engine. */
  docker?: DockerOptions;
  /** Options for every `open()` of this manager. */
  defaults?: OpenOptions;
  /** Limits that no `open()` may exceed. */
  policy?: SandboxPolicy;
  /**
   * The warm pool: image or shortcut → how many sandboxes to hold ready, as `open()` with the defaults and this image
   * would create them. An `open()` that asks for the same image, limits and network takes one in milliseconds.
   */
  warm?: Record<string, number>;
  /**
   * Ends a sandbox after this long without a request and without output. 0 means never. Without this option,
   * `COFFERDAM_IDLE_TIMEOUT` decides.
   *
   * @default 1_800_000
   */
  idleTimeoutMs?: number;
  /**
   * Ends a sandbox after this long in any case. 0 means never. Without this option, `COFFERDAM_MAX_LIFETIME` decides.
   *
   * @default 14_400_000
   */
  maxLifetimeMs?: number;
  /**
   * Ends a sandbox after this long with no program linked to it. 0 means never. Without this option,
   * `COFFERDAM_ORPHAN_TIMEOUT` decides.
   *
   * @default 300_000
   */
  orphanTimeoutMs?: number;
  /** Where `sandbox.stage()` reads and `sandbox.publish()` writes. Connected on first use; no sandbox can reach it. */
  store?: ObjectStoreOptions;
  /** Receives a log of what happens: `console`, a pino logger, or any with their methods. See `docs/observability.md`. */
  logger?: Logger;
  /**
   * Spans and metrics, if the program has `@opentelemetry/api`; `false` for none.
   *
   * @default { details: false }
   */
  telemetry?: false | TelemetryOptions;
}
