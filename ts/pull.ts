/** Pulling an image. */

/** How to pull. */
export interface PullOptions {
  /** Aborts the pull; the iteration rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** A step of a pull. */
export interface PullProgress {
  /** Resolved: `python:3.11-slim`. */
  image: string;
  /** The layer that the step is about. */
  layer?: string;
  /** In the engine's own words. */
  status: string;
  /** Bytes of the layer so far. */
  currentBytes?: number;
  /** Bytes of the whole layer, if known. */
  totalBytes?: number;
}
