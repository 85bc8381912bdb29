import { basename, resolve } from 'node:path';
import type {
  FileContent,
  FileData,
  FileEntry,
  ListOptions,
  MkdirOptions,
  ReadOptions,
  ReadTextOptions,
  RemoveOptions,
  StreamOptions,
  WriteOptions,
} from './file';
import type { NativeSandbox } from './internal/binding';
import { abortable, call, callSite } from './internal/call';
import * as check from './internal/check';
import { checkMode, isStream, pieces, toEntry, toNativeWrite, writeStream } from './internal/file';
import { reporting } from './internal/progress';
import { standard, type Telemetry, transfer, transferOutcome } from './internal/telemetry';
import {
  byPath,
  byPathAndLine,
  type GlobOptions,
  type GlobResult,
  type GrepOptions,
  type GrepResult,
  isBinary,
  type ReplaceOptions,
  type ReplaceResult,
  toNativeGlob,
  toNativeGrep,
  toNativeReplace,
  wholeText,
} from './search';
import { type TransferOptions, type TransferReport, toNativeReport, toNativeTransfer } from './transfer';
import { type FileChange, Watch, type WatchOptions } from './watch';

export type { FileContent, FileData, FileEntry, FileType, WriteOptions } from './file';

const READ_MAX_BYTES = 256 * 1024;
const READ_TEXT_MAX_BYTES = 64 * 1024 * 1024;
const LIST_MAX_ENTRIES = 100_000;

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
   * Writes a file and its parent directories. It appears whole or not at all, and is owned by the command user.
   *
   * @example
   * ```ts
   * await sandbox.files.write('src/main.py', 'print(6 * 7)');
   * await sandbox.files.write('run.log', 'done\n', { append: true });
   * await sandbox.files.write('big.bin', createReadStream('/data/big.bin'));
   * ```
   */
  async write(path: string, data: FileData, options: WriteOptions = {}): Promise<{ path: string; sizeBytes: number }> {
    const site = callSite(this.write);
    await call(site, async () => check.object('options', options));
    return abortable(site, options.signal, async (cancel) => {
      const write = toNativeWrite(path, options);
      if (isStream(data)) return writeStream(this.#native, write, data, cancel, options.signal);
      return this.#native.writeFile(write, check.bytes('data', data), cancel);
    });
  }

  /**
   * Writes several files in one round trip, each whole or not at all. The first that cannot be written rejects the call;
   * those before it are written, those after it are not.
   *
   * @example
   * ```ts
   * await sandbox.files.writeMany({ 'package.json': '{}', 'src/index.js': 'console.log(1)' });
   * ```
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

  /**
   * Reads at most `maxBytes` (256 KiB by default), starting at `offset`.
   *
   * @example
   * ```ts
   * const { bytes, truncated } = await sandbox.files.read('core.dump', { maxBytes: 1024 });
   * ```
   */
  async read(path: string, options: ReadOptions = {}): Promise<FileContent> {
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
   * Reads the whole file as text, or the lines from `fromLine` to `toLine` with their line ends. More than `maxBytes`
   * (64 MiB by default) rejects with `LIMIT_EXCEEDED`. Lines past the end are `''`.
   *
   * @example
   * ```ts
   * const all = await sandbox.files.readText('main.py');
   * const some = await sandbox.files.readText('main.py', { fromLine: 10, toLine: 20 });
   * ```
   */
  async readText(path: string, options: ReadTextOptions = {}): Promise<string> {
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

  /**
   * Streams a file of any size.
   *
   * @example
   * ```ts
   * for await (const piece of sandbox.files.stream('big.bin')) console.log(piece.length);
   * ```
   */
  stream(path: string, options: StreamOptions = {}): ReadableStream<Uint8Array> {
    const source = pieces(this.#native, callSite(this.stream), path, options);
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await source.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await source.return(undefined);
      },
    });
  }

  /**
   * Lists a directory, sorted by path; with `recursive`, everything below it. Links are not followed.
   *
   * @example
   * ```ts
   * for (const { path, type } of await sandbox.files.list('src', { recursive: true })) console.log(type, path);
   * ```
   */
  async list(path = '.', options: ListOptions = {}): Promise<FileEntry[]> {
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
   * Finds files, links and directories whose paths below `path` match a pattern: `*` stays within a name, `**` does not;
   * `{a,b}` and `[a-z]` are alternatives; a pattern that ends in `/` matches directories only.
   *
   * @example
   * ```ts
   * const { entries } = await sandbox.files.glob(['*.json', 'src/*.ts'], { exclude: ['*.test.ts'] });
   * ```
   */
  async glob(pattern: string | string[], options: GlobOptions = {}): Promise<GlobResult> {
    const { entries, truncated } = await abortable(callSite(this.glob), options?.signal, async (cancel) =>
      this.#native.glob(toNativeGlob(pattern, options), cancel),
    );
    return { entries: entries.map(toEntry).sort(byPath), truncated };
  }

  /**
   * Finds lines that match a regular expression, in one file or below a directory. Links are not followed. The syntax is
   * that of Rust's `regex`: no look-around, no back-references, and linear time.
   *
   * @example
   * ```ts
   * const { matches } = await sandbox.files.grep('TODO', { include: '*.py', before: 1 });
   * for (const { path, line, text } of matches) console.log(`${path}:${line}: ${text}`);
   * ```
   */
  async grep(pattern: string, options: GrepOptions = {}): Promise<GrepResult> {
    const result = await abortable(callSite(this.grep), options?.signal, async (cancel) =>
      this.#native.grep(toNativeGrep(pattern, options), cancel),
    );
    return { ...result, matches: result.matches.sort(byPathAndLine) };
  }

  /**
   * Replaces one text by another; by default, it must occur exactly once. The file changes whole or not at all, and its
   * mode and owner stay.
   *
   * @example
   * ```ts
   * await sandbox.files.replace('config.json', '"debug": false', '"debug": true');
   * ```
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

  /**
   * Returns what is at a path, or `null` if nothing is. Links are not followed.
   *
   * @example
   * ```ts
   * const entry = await sandbox.files.stat('main.py');
   * if (entry) console.log(entry.sizeBytes, entry.type);
   * ```
   */
  async stat(path: string): Promise<FileEntry | null> {
    const entry = await call(callSite(this.stat), async () => this.#native.stat(check.text('path', path)));
    return entry ? toEntry(entry) : null;
  }

  /**
   * Returns whether anything is at a path.
   *
   * @example
   * ```ts
   * if (!(await sandbox.files.exists('node_modules'))) await sandbox.exec('npm install');
   * ```
   */
  async exists(path: string): Promise<boolean> {
    return call(callSite(this.exists), async () => (await this.#native.stat(check.text('path', path))) !== null);
  }

  /**
   * Creates a directory and its parents. Idempotent.
   *
   * @example
   * ```ts
   * await sandbox.files.mkdir('data/raw');
   * ```
   */
  async mkdir(path: string, options: MkdirOptions = {}): Promise<void> {
    return call(callSite(this.mkdir), async () => {
      const { mode } = check.object('options', options);
      return this.#native.mkdir(check.text('path', path), mode === undefined ? undefined : checkMode(mode));
    });
  }

  /**
   * Moves a file or a directory. A file at `to` is replaced.
   *
   * @example
   * ```ts
   * await sandbox.files.move('draft.md', 'final.md');
   * ```
   */
  async move(from: string, to: string): Promise<void> {
    return call(callSite(this.move), async () => this.#native.rename(check.text('from', from), check.text('to', to)));
  }

  /**
   * Copies a file, or a directory with everything below it, including modes and times.
   *
   * @example
   * ```ts
   * await sandbox.files.copy('src', 'src.bak');
   * ```
   */
  async copy(from: string, to: string): Promise<void> {
    return call(callSite(this.copy), async () => this.#native.copy(check.text('from', from), check.text('to', to)));
  }

  /**
   * Copies a file, or a directory with everything below it, from the host to `path`; by default to the workdir, under its
   * name on the host. Modes and times stay, links stay links, and the command user owns all of it. A new directory
   * appears once it is complete; an existing one is updated file by file.
   *
   * @example
   * ```ts
   * const report = await sandbox.files.upload('./project', 'project', { gitignore: true, sync: true });
   * console.log(report.files, report.bytes);
   * ```
   */
  async upload(hostPath: string, path?: string, options: TransferOptions = {}): Promise<TransferReport> {
    const site = callSite(this.upload);
    await call(site, async () => check.object('options', options));
    const upload = () =>
      reporting(site, options.signal, options.onProgress, async (cancel, report) => {
        const target = path ?? basename(resolve(check.text('hostPath', hostPath)));
        return this.#native.upload(toNativeTransfer(hostPath, target, options), toNativeReport(report), cancel);
      });
    return this.#observed('upload', path ?? hostPath, upload);
  }

  /**
   * Copies a file, or a directory with everything below it, to `hostPath` on the host. Links stay links, wherever they
   * point, and are never followed; nothing outside `hostPath` is touched. Setuid and setgid bits are dropped.
   *
   * @example
   * ```ts
   * await sandbox.files.download('dist', './dist');
   * ```
   */
  async download(path: string, hostPath: string, options: TransferOptions = {}): Promise<TransferReport> {
    const site = callSite(this.download);
    await call(site, async () => check.object('options', options));
    const download = () =>
      reporting(site, options.signal, options.onProgress, async (cancel, report) =>
        this.#native.download(toNativeTransfer(hostPath, path, options), toNativeReport(report), cancel),
      );
    return this.#observed('download', path, download);
  }

  #observed(what: 'upload' | 'download', path: string, work: () => Promise<TransferReport>): Promise<TransferReport> {
    return this.#telemetry.observed(() => transfer(what, this.#native, this.#telemetry, path), work, transferOutcome);
  }

  /**
   * Removes a file, or with `recursive` a directory with everything below it. Returns `false` if nothing was there.
   *
   * @example
   * ```ts
   * await sandbox.files.remove('build', { recursive: true });
   * ```
   */
  async remove(path: string, options: RemoveOptions = {}): Promise<boolean> {
    return call(callSite(this.remove), async () =>
      this.#native.remove(
        check.text('path', path),
        check.boolean('recursive', check.object('options', options).recursive ?? false),
      ),
    );
  }

  /**
   * Yields what happens to the files of a directory, or to one file, from now on; with `recursive`, to everything below
   * it. Ends when the directory is gone, when the loop is left, or with the signal. A slow reader gets an `overflow` in
   * place of the changes that were dropped.
   *
   * @example
   * ```ts
   * for await (const { type, path } of sandbox.files.watch('src', { recursive: true })) console.log(type, path);
   * ```
   */
  watch(path: string, options: WatchOptions = {}): AsyncIterableIterator<FileChange> {
    return new Watch(this.#native, callSite(this.watch), path, options);
  }
}
