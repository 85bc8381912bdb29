import { basename, posix, resolve } from 'node:path';
import { unlessAborted } from './internal/abort';
import type { Cancel, NativeEntry, NativeFileWriter, NativeSandbox, NativeWrite } from './internal/binding';
import { abortable, type CallSite, call, callSite } from './internal/call';
import * as check from './internal/check';
import { newCancel } from './internal/native';
import { standard, type Telemetry, transfer, transferOutcome } from './internal/telemetry';
import {
  byPath,
  byPathAndLine,
  type GlobOptions,
  type GlobResult,
  type GrepOptions,
  type GrepResult,
  isBinary,
  type LineRange,
  type ReplaceOptions,
  type ReplaceResult,
  toNativeGlob,
  toNativeGrep,
  toNativeReplace,
  wholeText,
} from './search';
import { type TransferOptions, type TransferReport, toNativeTransfer, toProgress } from './transfer';
import { type FileChange, Watch, type WatchOptions } from './watch';

const READ_MAX_BYTES = 256 * 1024;
const READ_TEXT_MAX_BYTES = 64 * 1024 * 1024;
const LIST_MAX_ENTRIES = 100_000;

export type FileType = 'file' | 'dir' | 'symlink' | 'other';

/** What is at a path. */
export interface FileEntry {
  /** Absolute. */
  path: string;
  name: string;
  type: FileType;
  sizeBytes: number;
  /** Permission bits. */
  mode: number;
  mtimeMs: number;
  /** Where a symbolic link points. */
  target?: string;
}

/** What was read of a file. */
export interface FileContent {
  bytes: Uint8Array;
  /** The bytes as UTF-8. */
  text(): string;
  /** Whether the file goes on after them. */
  truncated: boolean;
  /** The whole file's size. */
  sizeBytes: number;
  /** As git decides: whether there is a NUL in the first 8,000 of the bytes. */
  isBinary: boolean;
}

export interface WriteOptions {
  /** Permission bits; those of the file it replaces, or 0644, unless told. */
  mode?: number;
  /** False refuses to replace a file, with `FILE_EXISTS`. */
  overwrite?: boolean;
  /** Whom it belongs to; whom commands run as unless told. */
  user?: string;
  /** Adds to the end of the file, which is made if it is missing. A source that breaks adds nothing. */
  append?: boolean;
  signal?: AbortSignal;
}

/** A file's content: whole, or piece by piece. */
export type FileData = string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/**
 * The files of a sandbox. Paths are absolute or under the workdir, and always in the sandbox.
 *
 * @example
 * ```ts
 * await sandbox.files.write('src/main.py', 'print(1)');
 * const text = await sandbox.files.readText('src/main.py');
 * ```
 */
export class Files {
  readonly #native: NativeSandbox;
  readonly #telemetry: Telemetry;

  /** @internal */
  constructor(native: NativeSandbox, telemetry: Telemetry = standard) {
    this.#native = native;
    this.#telemetry = telemetry;
  }

  /**
   * Writes a file with its parent directories. It appears whole or not at all, and belongs to whom commands run as.
   */
  async write(path: string, data: FileData, options: WriteOptions = {}): Promise<{ path: string; sizeBytes: number }> {
    const site = callSite(this.write);
    await call(site, async () => check.object('options', options));
    return abortable(site, options.signal, async (cancel) => {
      const write = toNativeWrite(path, options);
      if (isStream(data)) return this.#writeStream(write, data, cancel, options.signal);
      return this.#native.writeFile(write, check.bytes('data', data), cancel);
    });
  }

  async #writeStream(write: NativeWrite, data: AsyncIterable<unknown>, cancel?: Cancel, signal?: AbortSignal) {
    const writer: NativeFileWriter = await this.#native.fileWriter(write);
    const pieces = data[Symbol.asyncIterator]();
    const over = newCancel();
    const lost = writer.lost(over);
    lost.catch(() => {});
    try {
      for (;;) {
        // A source may stall for ever: the signal must still be heard, and the end of the sandbox.
        const next = await unlessAborted(Promise.race([pieces.next(), lost]), signal);
        if (next.done) return await writer.finish();
        await writer.write(check.bytes('a piece of data', next.value), cancel);
      }
    } catch (error) {
      // Not waited for: a source that has stalled may not hear it either.
      pieces.return?.().catch(() => {});
      throw error;
    } finally {
      over.cancel();
      writer.abandon();
    }
  }

  /**
   * Writes several files in one round trip, each whole or not at all. The first that cannot be written rejects: those
   * before it are there, those after it are not.
   */
  async writeMany(files: Record<string, string | Uint8Array>): Promise<void> {
    return call(callSite(this.writeMany), async () =>
      this.#native.writeMany(
        Object.entries(check.object('files', files)).map(([path, data]) => ({
          path: check.text('path', path),
          data: check.bytes(`files[${JSON.stringify(path)}]`, data),
        })),
      ),
    );
  }

  /** Reads at most `maxBytes` (256 KiB) from `offset` on. */
  async read(
    path: string,
    options: { offset?: number; maxBytes?: number; signal?: AbortSignal } = {},
  ): Promise<FileContent> {
    const site = callSite(this.read);
    await call(site, async () => check.object('options', options));
    const { bytes, truncated, sizeBytes } = await abortable(site, options.signal, async (cancel) =>
      this.#native.readFile(
        check.text('path', path),
        check.count('offset', options.offset ?? 0),
        check.count('maxBytes', options.maxBytes ?? READ_MAX_BYTES),
        cancel,
      ),
    );
    return { bytes, truncated, sizeBytes, isBinary: isBinary(bytes), text: () => bytes.toString('utf8') };
  }

  /**
   * The whole file as text, or the lines from `fromLine` to `toLine`, with their ends. More than `maxBytes` (64 MiB)
   * rejects with `LIMIT_EXCEEDED`. Lines past the end are `''`.
   */
  async readText(path: string, options: LineRange & { maxBytes?: number; signal?: AbortSignal } = {}): Promise<string> {
    const site = callSite(this.readText);
    await call(site, async () => check.object('options', options));
    const { fromLine, toLine, signal } = options;
    return abortable(site, signal, async (cancel) => {
      const limit = check.count('maxBytes', options.maxBytes ?? READ_TEXT_MAX_BYTES);
      const file = check.text('path', path);
      if (fromLine === undefined && toLine === undefined) {
        return wholeText(file, await this.#native.readFile(file, 0, limit, cancel), limit, options);
      }
      const from = check.count('fromLine', fromLine ?? 1);
      const to = toLine === undefined ? undefined : check.count('toLine', toLine);
      return wholeText(file, await this.#native.readLines(file, from, to, limit, cancel), limit, options);
    });
  }

  /** A file of any size, piece by piece. */
  stream(
    path: string,
    options: { offset?: number; maxBytes?: number; signal?: AbortSignal } = {},
  ): ReadableStream<Uint8Array> {
    const pieces = this.#pieces(callSite(this.stream), path, options);
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await pieces.return(undefined);
      },
    });
  }

  async *#pieces(
    site: CallSite,
    path: string,
    options: { offset?: number; maxBytes?: number; signal?: AbortSignal },
  ): AsyncGenerator<Uint8Array, undefined> {
    const reader = await call(site, async () =>
      this.#native.fileReader(
        check.text('path', path),
        check.count('offset', options.offset ?? 0),
        check.count('maxBytes', options.maxBytes ?? Number.MAX_SAFE_INTEGER),
      ),
    );
    for (;;) {
      const piece = await abortable(site, options.signal, (cancel) => reader.next(cancel));
      if (piece === null) return;
      yield piece;
    }
  }

  /** Everything in a directory, sorted by path; with `recursive`, everything below it. Links are not followed. */
  async list(path = '.', options: { recursive?: boolean; maxEntries?: number } = {}): Promise<FileEntry[]> {
    const entries = await call(callSite(this.list), async () =>
      this.#native.list(
        check.text('path', path),
        check.boolean('recursive', check.object('options', options).recursive ?? false),
        check.count('maxEntries', options.maxEntries ?? LIST_MAX_ENTRIES),
      ),
    );
    return entries.map(toEntry).sort(byPath);
  }

  /**
   * Files, links and directories whose paths fit a pattern, from `path` down: `*` stays within a name, `**` does not;
   * `{a,b}` and `[a-z]` are alternatives; one that ends in `/` is for directories.
   */
  async glob(pattern: string | string[], options: GlobOptions = {}): Promise<GlobResult> {
    const { entries, truncated } = await abortable(callSite(this.glob), options?.signal, async (cancel) =>
      this.#native.glob(toNativeGlob(pattern, options), cancel),
    );
    return { entries: entries.map(toEntry).sort(byPath), truncated };
  }

  /**
   * Lines that match a regular expression, in one file or below a directory. Links are not followed. The syntax is that
   * of Rust's `regex`: no look-around and no back-references, and time that grows only with the text.
   */
  async grep(pattern: string, options: GrepOptions = {}): Promise<GrepResult> {
    const result = await abortable(callSite(this.grep), options?.signal, async (cancel) =>
      this.#native.grep(toNativeGrep(pattern, options), cancel),
    );
    return { ...result, matches: result.matches.sort(byPathAndLine) };
  }

  /**
   * Puts one text in the place of another, which must occur just once unless told. The file changes whole or not at
   * all, and keeps its mode and its owner.
   */
  async replace(
    path: string,
    search: string,
    replacement: string,
    options: ReplaceOptions = {},
  ): Promise<ReplaceResult> {
    return abortable(callSite(this.replace), options?.signal, async (cancel) =>
      this.#native.replace(toNativeReplace(path, search, replacement, check.object('options', options)), cancel),
    );
  }

  /** What is at a path, `null` when nothing is. A link is not followed. */
  async stat(path: string): Promise<FileEntry | null> {
    const entry = await call(callSite(this.stat), async () => this.#native.stat(check.text('path', path)));
    return entry ? toEntry(entry) : null;
  }

  /** Whether anything is at a path. */
  async exists(path: string): Promise<boolean> {
    return call(callSite(this.exists), async () => (await this.#native.stat(check.text('path', path))) !== null);
  }

  /** Makes a directory with its parents. One that is there is fine. */
  async mkdir(path: string, options: { mode?: number } = {}): Promise<void> {
    return call(callSite(this.mkdir), async () => {
      const { mode } = check.object('options', options);
      return this.#native.mkdir(check.text('path', path), mode === undefined ? undefined : checkMode(mode));
    });
  }

  /** Moves a file or a directory; a file at `to` is replaced. */
  async move(from: string, to: string): Promise<void> {
    return call(callSite(this.move), async () => this.#native.rename(check.text('from', from), check.text('to', to)));
  }

  /** Copies a file, or a directory with all below it, with modes and times. */
  async copy(from: string, to: string): Promise<void> {
    return call(callSite(this.copy), async () => this.#native.copy(check.text('from', from), check.text('to', to)));
  }

  /**
   * Carries a file, or a directory with all below it, from the host to `path`, which is the name of the host's own in the
   * workdir unless told. Modes, times and links are kept, links as links; all of it belongs to whom commands run as. A
   * directory that is new appears when all of it is there; one that is there gets what is new, file by file.
   */
  async upload(hostPath: string, path?: string, options: TransferOptions = {}): Promise<TransferReport> {
    const site = callSite(this.upload);
    await call(site, async () => check.object('options', options));
    const upload = () =>
      abortable(site, options.signal, async (cancel) => {
        const target = path ?? basename(resolve(check.text('hostPath', hostPath)));
        return this.#native.upload(toNativeTransfer(hostPath, target, options), toProgress(options.onProgress), cancel);
      });
    return this.#carry('upload', path ?? hostPath, upload);
  }

  /**
   * Carries a file, or a directory with all below it, to `hostPath` on the host. Links are kept as links, wherever they
   * point, and never followed; nothing outside `hostPath` is touched. Setuid and setgid bits are not taken over.
   */
  async download(path: string, hostPath: string, options: TransferOptions = {}): Promise<TransferReport> {
    const site = callSite(this.download);
    await call(site, async () => check.object('options', options));
    const download = () =>
      abortable(site, options.signal, async (cancel) =>
        this.#native.download(toNativeTransfer(hostPath, path, options), toProgress(options.onProgress), cancel),
      );
    return this.#carry('download', path, download);
  }

  #carry(what: 'upload' | 'download', path: string, work: () => Promise<TransferReport>): Promise<TransferReport> {
    return this.#telemetry.observed(() => transfer(what, this.#native, this.#telemetry, path), work, transferOutcome);
  }

  /** Removes a file, or with `recursive` a directory with all below it. `false` when nothing was there. */
  async remove(path: string, options: { recursive?: boolean } = {}): Promise<boolean> {
    return call(callSite(this.remove), async () =>
      this.#native.remove(
        check.text('path', path),
        check.boolean('recursive', check.object('options', options).recursive ?? false),
      ),
    );
  }

  /**
   * What happens to a directory's files from this call on, or to one file; with `recursive`, to everything below it.
   * Ends when the directory itself is gone, when the loop is left, or with the signal. Who reads too slowly finds an
   * `overflow` in place of what was dropped.
   *
   * @example
   * ```ts
   * for await (const { type, path } of files.watch('src', { recursive: true })) console.log(type, path);
   * ```
   */
  watch(path: string, options: WatchOptions = {}): AsyncIterableIterator<FileChange> {
    return new Watch(this.#native, callSite(this.watch), path, options);
  }
}

/** @internal */
export function toNativeWrite(path: string, options: WriteOptions): NativeWrite {
  return {
    path: check.text('path', path),
    mode: options.mode === undefined ? undefined : checkMode(options.mode),
    keepExisting: options.overwrite === false,
    user: check.optionalText('user', options.user),
    append: check.boolean('append', options.append ?? false),
  };
}

function checkMode(mode: number): number {
  if (!Number.isInteger(mode) || mode < 0 || mode > 0o7777) {
    throw check.invalid('mode', 'permission bits between 0 and 0o7777', mode);
  }
  return mode;
}

function isStream(data: unknown): data is AsyncIterable<unknown> {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data;
}

function toEntry({ path, fileType, sizeBytes, mode, mtimeMs, target }: NativeEntry): FileEntry {
  const entry: FileEntry = { path, name: posix.basename(path), type: fileType, sizeBytes, mode, mtimeMs };
  if (target !== undefined && target !== null) entry.target = target;
  return entry;
}
