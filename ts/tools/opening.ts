/**
 * Something that several callers wait for. Each may give up on its own; when the last one has, the work is given up, too.
 */
import { unlessAborted } from '../internal/abort';

export class Opening<T> {
  readonly result: Promise<T>;
  readonly #abort = new AbortController();
  #waiting = 0;

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.result = work(this.#abort.signal);
    // Told to those who wait.
    this.result.catch(() => {});
  }

  /** Whether nobody waits any more: who comes now must start again. */
  get isGivenUp(): boolean {
    return this.#abort.signal.aborted;
  }

  async wait(signal?: AbortSignal): Promise<T> {
    this.#waiting += 1;
    try {
      return await unlessAborted(this.result, signal);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0 && signal?.aborted) this.#abort.abort(signal.reason);
    }
  }
}
