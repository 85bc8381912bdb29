/** How long a sandbox lives, and what is left of it. */

/** How long a sandbox lives from now on; 0 means no limit. */
export interface ExtendOptions {
  /** Ends the sandbox after this long without a request and without output. */
  idleTimeoutMs?: number;
  /** Ends the sandbox this long from now in any case. */
  maxLifetimeMs?: number;
}

/** What happens to the persistent workspace of a sandbox that is closed. */
export interface CloseOptions {
  /**
   * False removes it with the sandbox.
   *
   * @default true
   */
  keepData?: boolean;
}
