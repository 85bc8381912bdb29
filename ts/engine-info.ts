/** What sandboxes run on, as reported to programs. */
import type { Limits } from './open-options';

/** What sandboxes run on, and what it can and cannot do on this machine. */
export interface EngineInfo {
  /** `docker` or `namespaces`. */
  backend: string;
  /** Of the engine, or of the kernel. */
  version: string;
  /** Of the engine's API. */
  apiVersion?: string;
  /** The level of isolation, if it depends on the machine. */
  tier?: string;
  /**
   * What the backend knows, by name. For an engine: its `host`, where that address came from (`foundBy`: `option`,
   * `DOCKER_HOST`, `context <name>`, `default`), its `product` (`docker`, `podman`), `cgroupVersion`, `storageDriver`,
   * `dataRoot` and more.
   */
  abilities: Record<string, boolean | string>;
  /** Which limits are in effect. */
  limits: Record<keyof Limits, 'enforced' | 'watched' | 'none'>;
  /** Engines that were tried before this one answered; absent if it was the first. */
  tried?: EngineAttempt[];
}

/** An engine that could not be used: in `info()`, and as `details.tried` of `ENGINE_UNAVAILABLE`. */
export interface EngineAttempt {
  /** Its address. */
  host: string;
  /** Where the address came from: `option`, `DOCKER_HOST`, `context <name>`, or `default` for the usual places. */
  source: string;
  /** Why it cannot be used, for programs. */
  reason:
    | 'missing'
    | 'denied'
    | 'refused'
    | 'silent'
    | 'unresolved'
    | 'old-api'
    | 'not-an-engine'
    | 'bad-address'
    | 'other';
  /** The same, for people. */
  problem: string;
}
