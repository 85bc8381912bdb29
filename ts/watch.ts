import type { NativeFileChange, NativeSandbox, NativeWatch } from './internal/binding';
import { abortable, type CallSite } from './internal/call';
import * as check from './internal/check';

/** What happened to a file or a directory. */
export interface FileChange {
  /**
   * - `create`: it appeared. All that is below a new directory is told as well.
   * - `change`: its content, mode, owner or times are others.
   * - `delete`: it is gone, or was moved out of what is watched, with all that was below it.
   * - `rename`: it was `from`, and all below it goes with it. What was at `path` before is gone.
   * - `overflow`: more happened than could be told, or the connection broke in between: look again at what is there.
   */
  type: 'create' | 'change' | 'delete' | 'rename' | 'overflow';
  /** Below the watched directory; the name of a watched file. Empty for the watched directory itself. */
  path: string;
  /** The old path, of a `rename`. */
  from?: string;
}

/** What to watch. */
export interface WatchOptions {
  /** With all directories below, those that are made later included. */
  recursive?: boolean;
  /** Ends the watch. */
  signal?: AbortSignal;
}

function toChange({ type, path, from }: NativeFileChange): FileChange {
  return typeof from === 'string' ? { type, path, from } : { type, path };
}

/**
 * A watch that begins at once, not with the first read: what happens in between belongs to it. That it could not begin
 * is said to the first read.
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
    // Also when nobody reads, the sandbox need not go on telling.
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

  /** Ends the watch, and a read that waits. */
  return(): Promise<IteratorResult<FileChange, undefined>> {
    this.#stop();
    return this.#changes.return(undefined);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
