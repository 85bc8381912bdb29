/** One file: what is said of it, read of it and written to it. */

/** What kind of thing is at a path; a link is not followed. */
export type FileType = 'file' | 'dir' | 'symlink' | 'other';

/** What is at a path. */
export interface FileEntry {
  /** Absolute. */
  path: string;
  /** The last part of the path. */
  name: string;
  /** A link is `symlink`, whatever it points to. */
  type: FileType;
  /** Of a file; what the file system says of anything else. */
  sizeBytes: number;
  /** Permission bits. */
  mode: number;
  /** Last change of the content, since 1970. */
  mtimeMs: number;
  /** Where a symbolic link points. */
  target?: string;
}

/** What was read of a file. */
export interface FileContent {
  /** What was read. */
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

/** How to write a file. */
export interface WriteOptions {
  /** Permission bits; those of the file it replaces, or 0644, unless told. */
  mode?: number;
  /** False refuses to replace a file, with `FILE_EXISTS`. */
  overwrite?: boolean;
  /** Whom it belongs to; whom commands run as unless told. */
  user?: string;
  /** Adds to the end of the file, which is made if it is missing. A source that breaks adds nothing. */
  append?: boolean;
  /** Gives it up: the call rejects with the signal's own reason. */
  signal?: AbortSignal;
}

/** A file's content: whole, or piece by piece. */
export type FileData = string | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;
