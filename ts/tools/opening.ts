/**
 * Work that several callers wait for. Each can stop waiting; when the last one has, the work is aborted.
 */
import { unlessAborted } from '../internal/abort';

export class Opening<T> {
  readonly result: Promise<T>;
  readonly #abort = new AbortController();
  #waiting = 0;

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.result = work(this.#abort.signal);
    // Reported to the callers that wait.
    this.result.catch(() => {});
  }

  /** Whether the work was aborted: the next caller has to start it again. */
  get isAborted(): boolean {
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
