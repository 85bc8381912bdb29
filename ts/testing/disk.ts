/**
 * The files of a fake sandbox: a tree in memory that answers like the guest. No links, owners or devices, and nothing of the
 * host.
 */
import { posix } from 'node:path';
import { SandboxError, type SandboxErrorCode } from '../errors';
import type { NativeContent, NativeEntry, NativeWrite, NativeWritten } from '../internal/binding';

/** Linux's own limits. */
const MAX_PATH = 4095;
const MAX_NAME = 255;

type Node =
  | { bytes: Buffer; mode: number; mtimeMs: number; isDir?: false }
  | { isDir: true; mode: number; mtimeMs: number };
type FileNode = Extract<Node, { bytes: Buffer }>;

const REASONS: Partial<Record<SandboxErrorCode, string>> = {
  FILE_NOT_FOUND: 'no such file or directory',
  IS_A_DIRECTORY: 'it is a directory',
  NOT_A_DIRECTORY: 'a part of the path is not a directory',
  FILE_EXISTS: 'it already exists',
  INVALID_ARGUMENT: 'the file system does not take this path',
};

function refuse(code: SandboxErrorCode, what: string, path: string, reason = REASONS[code]): never {
  throw new SandboxError(code, `cannot ${what} "${path}": ${reason}`);
}

export class Disk {
  readonly #nodes = new Map<string, Node>();
  readonly #workdir: string;

  constructor(workdir: string) {
    this.#workdir = workdir;
    for (const path of ['/', '/tmp', workdir]) this.mkdir(path);
  }

  /** Absolute, without dots. */
  resolve(path: string): string {
    if (path === '') throw new SandboxError('INVALID_ARGUMENT', '"" is not a path: it is empty', { path });
    if (path.includes('\0')) throw new SandboxError('INVALID_ARGUMENT', 'a path has no NUL byte', { path });
    const absolute = posix.resolve(this.#workdir, path);
    const isLong =
      Buffer.byteLength(path) > MAX_PATH || path.split('/').some((name) => Buffer.byteLength(name) > MAX_NAME);
    if (isLong) refuse('INVALID_ARGUMENT', 'use', absolute, 'the path is longer than Linux allows');
    return absolute;
  }

  /** What is at a path; throws for a path through a file. */
  #find(what: string, absolute: string): Node | undefined {
    const found = this.#nodes.get(absolute);
    if (!found && this.#ancestor(absolute)?.isDir === false) refuse('NOT_A_DIRECTORY', what, absolute);
    return found;
  }

  /** The nearest thing above a path. */
  #ancestor(absolute: string): { isDir: boolean } | undefined {
    for (let above = posix.dirname(absolute); ; above = posix.dirname(above)) {
      const node = this.#nodes.get(above);
      if (node) return { isDir: node.isDir === true };
      if (above === '/') return undefined;
    }
  }

  #file(what: string, path: string): FileNode {
    const absolute = this.resolve(path);
    const node = this.#find(what, absolute) ?? refuse('FILE_NOT_FOUND', what, absolute);
    return node.isDir ? refuse('IS_A_DIRECTORY', what, absolute) : node;
  }

  read(path: string, offset = 0, limit = Number.MAX_SAFE_INTEGER): NativeContent {
    const { bytes } = this.#file('read', path);
    const part = bytes.subarray(offset, Math.min(offset + limit, bytes.length));
    return { bytes: Buffer.from(part), truncated: offset + part.length < bytes.length, sizeBytes: bytes.length };
  }

  /** Lines `from` to `to`, counted from 1, both included, with their ends. */
  readLines(path: string, from: number, to: number | undefined, limit: number): NativeContent {
    const { bytes } = this.#file('read', path);
    if (from < 1 || (to !== undefined && to < from)) {
      throw new SandboxError(
        'INVALID_ARGUMENT',
        `lines are counted from 1, and toLine is not before fromLine: ${from} to ${to}`,
      );
    }
    const lines = bytes.toString('latin1').split(/(?<=\n)/);
    const part = Buffer.from(lines.slice(from - 1, to).join(''), 'latin1');
    return { bytes: part.subarray(0, limit), truncated: part.length > limit, sizeBytes: bytes.length };
  }

  write(
    { path, mode, keepExisting, append }: Pick<NativeWrite, 'path'> & Partial<NativeWrite>,
    data: Uint8Array,
  ): NativeWritten {
    const absolute = this.resolve(path);
    const before = this.#find('write', absolute);
    if (before?.isDir || path.endsWith('/')) refuse('IS_A_DIRECTORY', 'write', absolute);
    if (append && keepExisting)
      throw new SandboxError('INVALID_ARGUMENT', 'append and overwrite: false exclude each other');
    if (before && keepExisting) refuse('FILE_EXISTS', 'write', absolute);
    this.mkdir(posix.dirname(absolute));
    const bytes = append && before ? Buffer.concat([before.bytes, data]) : Buffer.from(data);
    this.#nodes.set(absolute, { bytes, mode: mode ?? before?.mode ?? 0o644, mtimeMs: Date.now() });
    return { path: absolute, sizeBytes: bytes.length };
  }

  stat(path: string): NativeEntry | null {
    const absolute = this.resolve(path);
    const node = this.#nodes.get(absolute);
    return node ? toEntry(absolute, node) : null;
  }

  /** Everything in a directory, or below it. */
  list(path: string, recursive: boolean, maxEntries = Number.MAX_SAFE_INTEGER): NativeEntry[] {
    const absolute = this.resolve(path);
    const node = this.#find('list', absolute) ?? refuse('FILE_NOT_FOUND', 'list', absolute);
    if (!node.isDir) refuse('NOT_A_DIRECTORY', 'list', absolute);
    const below = this.#below(absolute).filter(([key]) => recursive || posix.dirname(key) === absolute);
    if (below.length > maxEntries) {
      const message = `"${path}" has more than ${maxEntries} entries; raise maxEntries, or list a part of it`;
      throw new SandboxError('LIMIT_EXCEEDED', message, { maxEntries });
    }
    return below.map(([key, each]) => toEntry(key, each));
  }

  #below(absolute: string): [string, Node][] {
    const prefix = absolute === '/' ? '/' : `${absolute}/`;
    return [...this.#nodes].filter(([key]) => key.startsWith(prefix) && key !== absolute);
  }

  mkdir(path: string, mode?: number): void {
    const absolute = this.resolve(path);
    const node = this.#find('make the folder', absolute);
    if (node && !node.isDir) refuse('FILE_EXISTS', 'make the folder', absolute);
    if (node) return;
    if (absolute !== '/') this.mkdir(posix.dirname(absolute));
    this.#nodes.set(absolute, { isDir: true, mode: mode ?? 0o755, mtimeMs: Date.now() });
  }

  move(from: string, to: string): void {
    const [source, target] = [this.resolve(from), this.resolve(to)];
    const node = this.#find('move', source) ?? refuse('FILE_NOT_FOUND', 'move', source);
    const there = this.#find('move to', target);
    if (source === target) return;
    if (node.isDir && target.startsWith(`${source}/`)) refuse('INVALID_ARGUMENT', 'move to', target);
    if (there?.isDir && !node.isDir) refuse('IS_A_DIRECTORY', 'move to', target);
    if (there && !there.isDir && node.isDir) refuse('NOT_A_DIRECTORY', 'move to', target);
    if (there?.isDir && this.#below(target).length > 0) refuse('FILE_EXISTS', 'move to', target);
    this.mkdir(posix.dirname(target));
    for (const [key, each] of [[source, node] as const, ...this.#below(source)]) {
      this.#nodes.delete(key);
      this.#nodes.set(target + key.slice(source.length), each);
    }
  }

  copy(from: string, to: string): void {
    const [source, target] = [this.resolve(from), this.resolve(to)];
    const node = this.#find('copy', source) ?? refuse('FILE_NOT_FOUND', 'copy', source);
    const there = this.#find('copy to', target);
    if (node.isDir && `${target}/`.startsWith(`${source}/`))
      refuse('INVALID_ARGUMENT', 'copy a folder into itself, to', target);
    if (there?.isDir && !node.isDir) refuse('IS_A_DIRECTORY', 'copy over', target);
    if (there && !there.isDir && node.isDir) refuse('FILE_EXISTS', 'copy to', target);
    this.mkdir(posix.dirname(target));
    for (const [key, each] of [[source, node] as const, ...this.#below(source)]) {
      this.#nodes.set(target + key.slice(source.length), { ...each });
    }
  }

  remove(path: string, recursive: boolean): boolean {
    const absolute = this.resolve(path);
    const node = this.#nodes.get(absolute);
    if (!node) return false;
    if (node.isDir && !recursive) {
      refuse(
        'IS_A_DIRECTORY',
        'remove',
        absolute,
        `${REASONS.IS_A_DIRECTORY}; pass recursive: true to remove it with everything below it`,
      );
    }
    for (const [key] of this.#below(absolute)) this.#nodes.delete(key);
    if (absolute !== '/' && absolute !== this.#workdir) this.#nodes.delete(absolute);
    return true;
  }

  /** Of everything under the workdir. */
  usedBytes(): number {
    return this.#below(this.#workdir).reduce((sum, [, node]) => sum + (node.isDir ? 0 : node.bytes.length), 0);
  }
}

function toEntry(path: string, node: Node): NativeEntry {
  const { mode, mtimeMs } = node;
  if (node.isDir) return { path, fileType: 'dir', sizeBytes: 4096, mode, mtimeMs };
  return { path, fileType: 'file', sizeBytes: node.bytes.length, mode, mtimeMs };
}
