/** Removing what dead programs and older versions left. */

/** What to remove. */
export interface PruneOptions {
  /**
   * Also persistent workspaces that no sandbox uses at the moment. Their files are lost.
   *
   * @default false
   */
  volumes?: boolean;
  /**
   * Also all cached packages that no sandbox uses at the moment.
   *
   * @default false
   */
  packages?: boolean;
  /**
   * Only what is at least this old.
   *
   * @default 0
   */
  olderThanMs?: number;
  /**
   * Reports what would be removed, and removes nothing.
   *
   * @default false
   */
  dryRun?: boolean;
}

/** What was removed. */
export interface PruneReport {
  /** Dead sandboxes, by id. */
  sandboxes: string[];
  /** Volumes, by name. */
  volumes: string[];
  /** Cached packages, by image name. */
  packages: string[];
}
