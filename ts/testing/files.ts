/** The file calls of a fake sandbox, on its disk. */
import type { SandboxError } from '../errors';
import type * as Native from '../internal/binding';
import type { Disk } from './disk';
import { glob, grep, replace } from './search';
import { download, upload } from './transfer';

const PIECE = 64 * 1024;

type OnProgress = ((step: Native.NativeProgress) => void) | null;

export class FakeFiles implements Partial<Native.NativeSandbox> {
  readonly disk: Disk;
  isClosed = false;
  /** Rejects when the sandbox is gone. */
  readonly gone: Promise<never>;
  #reject: (error: SandboxError) => void = () => {};

  constructor(disk: Disk) {
    this.disk = disk;
    this.gone = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.gone.catch(() => {});
  }

  /** File writers fail from now on. */
  protected markGone(error: SandboxError): void {
    this.isClosed = true;
    this.#reject(error);
  }

  async writeFile(write: Native.NativeWrite, data: Uint8Array): Promise<Native.NativeWritten> {
    return this.disk.write(write, data);
  }

  async fileWriter(write: Native.NativeWrite): Promise<Native.NativeFileWriter> {
    const pieces: Uint8Array[] = [];
    return {
      write: async (data) => {
        if (this.isClosed) return this.gone;
        pieces.push(Buffer.from(data));
      },
      finish: async () => this.disk.write(write, Buffer.concat(pieces)),
      lost: () => this.gone,
      abandon() {},
    };
  }

  async writeMany(files: Native.NativeFile[]): Promise<void> {
    for (const { path, data } of files) this.disk.write({ path }, data);
  }

  async readFile(path: string, offset: number, limit: number): Promise<Native.NativeContent> {
    return this.disk.read(path, offset, limit);
  }

  async readLines(
    path: string,
    from: number,
    to: number | undefined | null,
    limit: number,
  ): Promise<Native.NativeContent> {
    return this.disk.readLines(path, from, to ?? undefined, limit);
  }

  async fileReader(path: string, offset: number, limit: number): Promise<Native.NativeFileReader> {
    const { bytes } = this.disk.read(path, offset, limit);
    let at = 0;
    const next = async () => {
      const piece = bytes.subarray(at, at + PIECE);
      at += piece.length;
      return piece.length > 0 ? piece : null;
    };
    return { next };
  }

  async list(path: string, recursive: boolean, maxEntries: number): Promise<Native.NativeEntry[]> {
    return this.disk.list(path, recursive, maxEntries);
  }

  async stat(path: string): Promise<Native.NativeEntry | null> {
    return this.disk.stat(path);
  }

  async mkdir(path: string, mode?: number | null): Promise<void> {
    this.disk.mkdir(path, mode ?? undefined);
  }

  async rename(from: string, to: string): Promise<void> {
    this.disk.move(from, to);
  }

  async copy(from: string, to: string): Promise<void> {
    this.disk.copy(from, to);
  }

  async remove(path: string, recursive: boolean): Promise<boolean> {
    return this.disk.remove(path, recursive);
  }

  async glob(request: Native.NativeGlob): Promise<Native.NativeEntries> {
    return glob(this.disk, request);
  }

  async grep(request: Native.NativeGrep): Promise<Native.NativeMatches> {
    return grep(this.disk, request);
  }

  async replace(request: Native.NativeReplace): Promise<Native.NativeReplaced> {
    return replace(this.disk, request);
  }

  async upload(transfer: Native.NativeTransfer, onProgress?: OnProgress) {
    return upload(this.disk, transfer, onProgress ?? undefined);
  }

  async download(transfer: Native.NativeTransfer, onProgress?: OnProgress) {
    return download(this.disk, transfer, onProgress ?? undefined);
  }
}
