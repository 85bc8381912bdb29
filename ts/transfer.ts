/** Files and trees copied between the host and a sandbox: options, progress and report. */
import { resolve } from 'node:path';
import type { ProgressCallback } from './callbacks';
import type { NativeProgress, NativeTransfer } from './internal/binding';
import * as check from './internal/check';

/** How far a transfer is. */
export interface TransferProgress {
  /** Complete files so far. */
  files: number;
  /** Bytes of content so far. */
  bytes: number;
  /** Bytes of content in all, if known. */
  totalBytes?: number;
  /** The current file, relative to the root. */
  path: string;
}

/** What to copy. */
export interface TransferOptions {
  /**
   * Skips what the `.gitignore` files in the tree name.
   *
   * @default false
   */
  gitignore?: boolean;
  /** Skips these, each a line as in a `.gitignore` at the root. */
  exclude?: string[];
  /**
   * Copies only what differs in type, size, time or mode. Removes nothing.
   *
   * @default false
   */
  sync?: boolean;
  /** Called from time to time and at the end, one call at a time. One that throws or rejects aborts the transfer. */
  onProgress?: ProgressCallback<TransferProgress>;
  /** Aborts the call; rejects with `signal.reason`. */
  signal?: AbortSignal;
}

/** What was copied. */
export interface TransferReport {
  /** Files. */
  files: number;
  /** Directories below the root. */
  dirs: number;
  /** Symbolic links, as links. */
  links: number;
  /** Bytes of the files' content, without holes. */
  bytes: number;
  /** What was not copied, and why: devices, sockets, FIFOs, unreadable files, and what the rules exclude. */
  skipped: { path: string; reason: string }[];
  /** How long it took. */
  durationMs: number;
}

/** @internal */
export function toNativeTransfer(hostPath: string, path: string, options: TransferOptions): NativeTransfer {
  const host = check.text('hostPath', hostPath);
  check.optionalFunction('onProgress', options.onProgress);
  return {
    // A trailing slash means: into this folder.
    hostPath: host && resolve(host) + (host.endsWith('/') ? '/' : ''),
    path: check.text('path', path),
    exclude: check.list('exclude', options.exclude),
    gitignore: check.boolean('gitignore', options.gitignore ?? false),
    sync: check.boolean('sync', options.sync ?? false),
  };
}

/** @internal `undefined`, not `null`, if there is no total. */
export function toNativeReport(
  report: ((progress: TransferProgress) => void) | undefined,
): ((progress: NativeProgress) => void) | undefined {
  return (
    report &&
    (({ files, bytes, totalBytes, path }) => report({ files, bytes, totalBytes: totalBytes ?? undefined, path }))
  );
}
