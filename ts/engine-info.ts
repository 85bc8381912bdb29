/** What sandboxes run on, as a program is told of it. */
import type { Limits } from './options';

/** What sandboxes run on, and what that can and cannot do here. */
export interface EngineInfo {
  /** `docker` or `namespaces`. */
  backend: string;
  /** The engine’s own, or the kernel’s. */
  version: string;
  /** Of the engine’s API. */
  apiVersion?: string;
  /** How well sandboxes are kept apart, where that depends on the machine. */
  tier?: string;
  /**
   * Facts by name, where the backend knows them: of an engine its `host`, who named it (`foundBy`: `option`, `DOCKER_HOST`,
   * `context <name>`, `default`), its `product` (`docker`, `podman`), `cgroupVersion`, `storageDriver`, `dataRoot` and more.
   */
  abilities: Record<string, boolean | string>;
  /** Which limits really apply. */
  limits: Record<keyof Limits, 'enforced' | 'watched' | 'none'>;
  /** Engines that were tried before this one answered; absent when it was the first. */
  tried?: EngineAttempt[];
}

/** An engine that was tried in vain: in `info()`, and as `details.tried` of `ENGINE_UNAVAILABLE`. */
export interface EngineAttempt {
  /** Its address. */
  host: string;
  /** Who named it: `option`, `DOCKER_HOST`, `context <name>`; `default` where engines usually are. */
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
  /** The same in words. */
  problem: string;
}
