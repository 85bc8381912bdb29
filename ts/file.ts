/** One file: its entry, its content, and options to read and write it. */
import type { LineRange } from './search';

/** What is at a path; links are not followed. */
export type FileType = 'file' | 'dir' | 'symlink' | 'other';

/** What is at a path. */
export interface FileEntry {
  /** Absolute. */
  path: string;
  /** The last part of the path. */
  name: string;
  /** A symbolic link is `symlink`, whatever it points to. */
  type: FileType;
  /** Size of a file; for anything else, as the file system reports it. */
  sizeBytes: number;
  /** Permission bits. */
  mode: number;
  /** Last change of the content, in milliseconds since 1970. */
  mtimeMs: number;
  /** Where a symbolic link points. */
  target?: string;
}

/** What was read from a file. */
export interface FileContent {
  /** The bytes that were read. */
  bytes: Uint8Array;
  /** The bytes as UTF-8. */
  text(): string;
  /** Whether the file has more after them. */
  truncated: boolean;
  /** The whole file's size. */
  sizeBytes: number;
  /** Whether there is a NUL in the first 8,000 bytes, as git decides. */
  isBinary: boolean;
}

/** How to write a file. */
export interface WriteOptions {
  /** Permission bits. By default, those of the file it replaces, or `0o644`. */
  mode?: number;
  /**
   * False refuses to replace a file, with `FILE_EXISTS`.
   *
   * @default true
   */
  overwrite?: boolean;
  /** Its owner. By default, the command user. */
  user?: string;
  /**
   * Adds to the end of the file, and creates it if it is missing. A source that fails adds nothing.
   *
   * @default false
   */
  append?: boolean;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** Which part of a file to read. */
export interface ReadOptions {
  /**
   * Where to start, in bytes.
   *
   * @default 0
   */
  offset?: number;
  /**
   * The most bytes to read.
   *
   * @default 262_144
   */
  maxBytes?: number;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** Which lines of a text file to read: all of them by default. */
export interface ReadTextOptions extends LineRange {
  /**
   * Longer text rejects with `LIMIT_EXCEEDED`.
   *
   * @default 67_108_864
   */
  maxBytes?: number;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** Which part of a file to stream. */
export interface StreamOptions {
  /**
   * Where to start, in bytes.
   *
   * @default 0
   */
  offset?: number;
  /** The most bytes to read. By default, the whole file. */
  maxBytes?: number;
  /** Aborts the stream; reads reject with `signal.reason`. */
  signal?: AbortSignal;
}

/** What to list. */
export interface ListOptions {
  /**
   * Everything below the directory, not only what is in it.
   *
   * @default false
   */
  recursive?: boolean;
  /**
   * More entries reject with `LIMIT_EXCEEDED`.
   *
   * @default 100_000
   */
  maxEntries?: number;
}

/** How to create a directory. */
export interface MkdirOptions {
  /**
   * Permission bits.
   *
   * @default 0o755
   */
  mode?: number;
}

/** What to remove. */
export interface RemoveOptions {
  /**
   * A directory with everything below it.
   *
   * @default false
   */
  recursive?: boolean;
}

/** A file's content: whole, or as a stream. */
export type FileData = string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;
