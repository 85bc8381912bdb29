/** Whole trees between the host and a sandbox: what is asked for, and what is told of it. */
import { resolve } from 'node:path';
import type { NativeProgress, NativeTransfer } from './internal/binding';
import * as check from './internal/check';

/** How far a transfer has come. */
export interface TransferProgress {
  /** Whole files so far. */
  files: number;
  /** Of content so far. */
  bytes: number;
  /** Where that is known. */
  totalBytes?: number;
  /** What it is at, below the root. */
  path: string;
}

/** What to carry, and how. */
export interface TransferOptions {
  /** Leave out what the `.gitignore` files in the tree say. False unless told. */
  gitignore?: boolean;
  /** Leave these out, each a line as in a `.gitignore` at the root. */
  exclude?: string[];
  /** Carry only what is not there already, by kind, size, time and mode. Nothing is removed. False unless told. */
  sync?: boolean;
  /** Called now and then, and at the end. */
  onProgress?: (progress: TransferProgress) => void;
  /** Gives it up: the call rejects with the signal's own reason. */
  signal?: AbortSignal;
}

/** What was carried. */
export interface TransferReport {
  /** Whole files. */
  files: number;
  /** Folders below the root. */
  dirs: number;
  /** Symbolic links, as links. */
  links: number;
  /** Of files' content, without holes. */
  bytes: number;
  /** What was not carried, and why: devices, sockets, FIFOs, what cannot be read, and what the rules leave out. */
  skipped: { path: string; reason: string }[];
  /** How long it took. */
  durationMs: number;
}

/** @internal */
export function toNativeTransfer(hostPath: string, path: string, options: TransferOptions): NativeTransfer {
  const host = check.text('hostPath', hostPath);
  check.optionalFunction('onProgress', options.onProgress);
  return {
    // A closing slash says that a file goes into the folder.
    hostPath: host && resolve(host) + (host.endsWith('/') ? '/' : ''),
    path: check.text('path', path),
    exclude: check.list('exclude', options.exclude),
    gitignore: check.boolean('gitignore', options.gitignore ?? false),
    sync: check.boolean('sync', options.sync ?? false),
  };
}

/** @internal `undefined`, not `null`, where there is no total. */
export function toProgress(callback: TransferOptions['onProgress']): ((progress: NativeProgress) => void) | undefined {
  return (
    callback &&
    (({ files, bytes, totalBytes, path }) => callback({ files, bytes, totalBytes: totalBytes ?? undefined, path }))
  );
}
