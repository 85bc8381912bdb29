/**
 * Hears what happens to a workspace's files, and tells it in few words.
 *
 * Invariant: one watch at most, and at most one telling per interval however much happens.
 */
import { posix } from 'node:path';
import type { Sandbox } from '../sandbox';
import type { FileChange } from '../watch';

const INTERVAL_MS = 100;

export interface WatchListener {
  /** Files came or went. */
  onListChanged(): Promise<void>;
  /** A file that was subscribed to, by its absolute path. */
  onUpdated(path: string): Promise<void>;
}

export class WorkspaceWatch {
  /** Whether anybody wants to hear of files. */
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

  /** Begins, unless it has already; with news, what is there now counts as changed. */
  begin(sandbox: Sandbox, options: { withNews?: boolean } = {}): void {
    if (this.#watching) return;
    const watching = new AbortController();
    this.#watching = watching;
    if (options.withNews) this.#note({ type: 'overflow', path: '' }, sandbox.workdir);
    this.#follow(sandbox, watching.signal)
      // It ends with the sandbox, or where the engine cannot watch: the next look begins anew.
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
    this.#tellSoon();
  }

  #tellSoon(): void {
    if (!this.#listChanged && this.#updated.size === 0) return;
    this.#timer ??= setTimeout(() => void this.#tell(), INTERVAL_MS).unref();
  }

  async #tell(): Promise<void> {
    const updated = [...this.#updated];
    const listChanged = this.#listChanged;
    this.#updated.clear();
    this.#listChanged = false;
    // A client that left needs no news; that it left is found out elsewhere.
    if (listChanged) await this.#listener.onListChanged().catch(() => {});
    for (const path of updated) await this.#listener.onUpdated(path).catch(() => {});
    this.#timer = undefined;
    this.#tellSoon();
  }
}

/** Whether a change is one of the file at `path`, or of a folder above it. */
function concerns(change: FileChange, workdir: string, path: string): boolean {
  if (change.type === 'overflow') return true;
  return [change.path, change.from].some((below) => {
    if (below === undefined) return false;
    const changed = posix.join(workdir, below);
    return path === changed || (change.type !== 'change' && path.startsWith(`${changed}/`));
  });
}
