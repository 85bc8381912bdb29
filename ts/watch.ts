import type { NativeFileChange, NativeSandbox, NativeWatch } from './internal/binding';
import { abortable, type CallSite } from './internal/call';
import * as check from './internal/check';

/** What happened to a file or a directory. */
export interface FileChange {
  /**
   * - `create`: it appeared. Everything below a new directory is reported as well.
   * - `change`: its content, mode, owner or times changed.
   * - `delete`: it is gone, or was moved out of the watched directory, with everything below it.
   * - `rename`: it was `from`, and everything below it moved with it. What was at `path` before is gone.
   * - `overflow`: changes were dropped, or the connection broke in between: list the directory again.
   */
  type: 'create' | 'change' | 'delete' | 'rename' | 'overflow';
  /** Below the watched directory; the name of a watched file. Empty for the watched directory itself. */
  path: string;
  /** The old path, of a `rename`. */
  from?: string;
}

/** What to watch. */
export interface WatchOptions {
  /**
   * Also watches all directories below, including those created later.
   *
   * @default false
   */
  recursive?: boolean;
  /** Ends the watch; a read rejects with `signal.reason`. */
  signal?: AbortSignal;
}

function toChange({ type, path, from }: NativeFileChange): FileChange {
  return typeof from === 'string' ? { type, path, from } : { type, path };
}

/**
 * A watch that begins at once, not with the first read, so that changes in between are not lost. If it could not begin,
 * the first read rejects.
 */
export class Watch implements AsyncIterableIterator<FileChange> {
  readonly #begun: Promise<NativeWatch>;
  readonly #changes: AsyncGenerator<FileChange, undefined>;
  readonly #forgetSignal: () => void;

  /** @internal */
  constructor(native: NativeSandbox, site: CallSite, path: string, options: WatchOptions) {
    const signal = options?.signal;
    this.#begun = abortable(site, signal, async (cancel) =>
      native.watch(
        check.text('path', path),
        check.boolean('recursive', check.object('options', options).recursive ?? false),
        cancel,
      ),
    );
    this.#begun.catch(() => {});
    // Stops the sandbox from sending changes, also while no one reads.
    const onAbort = () => this.#stop();
    signal?.addEventListener?.('abort', onAbort, { once: true });
    this.#forgetSignal = () => signal?.removeEventListener?.('abort', onAbort);
    this.#changes = this.#read(site, signal);
  }

  async *#read(site: CallSite, signal: AbortSignal | undefined): AsyncGenerator<FileChange, undefined> {
    try {
      const watch = await this.#begun;
      for (;;) {
        const changes = await abortable(site, signal, (cancel) => watch.nextMany(cancel));
        signal?.throwIfAborted();
        if (changes.length === 0) return;
        yield* changes.map(toChange);
      }
    } finally {
      this.#stop();
    }
  }

  #stop(): void {
    this.#forgetSignal();
    this.#begun.then(
      (watch) => watch.stop(),
      () => {},
    );
  }

  next(): Promise<IteratorResult<FileChange, undefined>> {
    return this.#changes.next();
  }

  /** Ends the watch and a pending read. */
  return(): Promise<IteratorResult<FileChange, undefined>> {
    this.#stop();
    return this.#changes.return(undefined);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
