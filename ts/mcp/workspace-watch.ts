/**
 * Watches the files of a workspace, and notifies of changes in batches.
 *
 * Invariant: at most one watch, and at most one notification per interval, however much changes.
 */
import { posix } from 'node:path';
import type { Sandbox } from '../sandbox';
import type { FileChange } from '../watch';

const INTERVAL_MS = 100;

export interface WatchListener {
  /** Files were created or deleted. */
  onListChanged(): Promise<void>;
  /** A subscribed file has changed, by its absolute path. */
  onUpdated(path: string): Promise<void>;
}

export class WorkspaceWatch {
  /** Whether the client wants notifications. */
  isWanted = false;
  /** Absolute paths. */
  readonly subscribed = new Set<string>();
  readonly #listener: WatchListener;
  #watching: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #listChanged = false;
  readonly #updated = new Set<string>();

  constructor(listener: WatchListener) {
    this.#listener = listener;
  }

  get isRunning(): boolean {
    return this.#watching !== undefined;
  }

  /** Starts the watch if it is not running. With `withNews`, the current files count as changed. */
  begin(sandbox: Sandbox, options: { withNews?: boolean } = {}): void {
    if (this.#watching) return;
    const watching = new AbortController();
    this.#watching = watching;
    if (options.withNews) this.#note({ type: 'overflow', path: '' }, sandbox.workdir);
    this.#follow(sandbox, watching.signal)
      // It ends with the sandbox, or where watching is not possible. The next request starts it again.
      .catch(() => {})
      .finally(() => {
        if (this.#watching !== watching) return;
        this.#watching = undefined;
        this.#note({ type: 'overflow', path: '' }, sandbox.workdir);
      });
  }

  end(): void {
    this.isWanted = false;
    clearTimeout(this.#timer);
    this.#watching?.abort();
    this.#watching = undefined;
  }

  async #follow(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const changes = sandbox.files.watch(sandbox.workdir, { recursive: true, signal });
    for await (const change of changes) this.#note(change, sandbox.workdir);
  }

  #note(change: FileChange, workdir: string): void {
    if (!this.isWanted) return;
    if (change.type !== 'change') this.#listChanged = true;
    for (const path of this.subscribed) if (concerns(change, workdir, path)) this.#updated.add(path);
    this.#notifySoon();
  }

  #notifySoon(): void {
    if (!this.#listChanged && this.#updated.size === 0) return;
    this.#timer ??= setTimeout(() => void this.#notify(), INTERVAL_MS).unref();
  }

  async #notify(): Promise<void> {
    const updated = [...this.#updated];
    const listChanged = this.#listChanged;
    this.#updated.clear();
    this.#listChanged = false;
    // A client that is gone is noticed elsewhere.
    if (listChanged) await this.#listener.onListChanged().catch(() => {});
    for (const path of updated) await this.#listener.onUpdated(path).catch(() => {});
    this.#timer = undefined;
    this.#notifySoon();
  }
}

/** Whether a change affects the file at `path`: the file itself, or a directory above it. */
function concerns(change: FileChange, workdir: string, path: string): boolean {
  if (change.type === 'overflow') return true;
  return [change.path, change.from].some((below) => {
    if (below === undefined) return false;
    const changed = posix.join(workdir, below);
    return path === changed || (change.type !== 'change' && path.startsWith(`${changed}/`));
  });
}
