/** Reads and writes files through the addon. */
import { posix } from 'node:path';
import type { FileEntry, StreamOptions, WriteOptions } from '../file';
import { unlessAborted } from './abort';
import type { Cancel, NativeEntry, NativeFileWriter, NativeSandbox, NativeWrite } from './binding';
import { abortable, type CallSite, call } from './call';
import * as check from './check';
import { newCancel } from './native';

export function toNativeWrite(path: string, options: WriteOptions): NativeWrite {
  return {
    path: check.text('path', path),
    mode: options.mode === undefined ? undefined : checkMode(options.mode),
    keepExisting: options.overwrite === false,
    user: check.optionalText('user', options.user),
    append: check.boolean('append', options.append ?? false),
  };
}

export function checkMode(mode: number): number {
  if (!Number.isInteger(mode) || mode < 0 || mode > 0o7777) {
    throw check.invalid('mode', 'permission bits between 0 and 0o7777', mode);
  }
  return mode;
}

export function isStream(data: unknown): data is AsyncIterable<unknown> {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data;
}

export function toEntry({ path, fileType, sizeBytes, mode, mtimeMs, target }: NativeEntry): FileEntry {
  const entry: FileEntry = { path, name: posix.basename(path), type: fileType, sizeBytes, mode, mtimeMs };
  if (target !== undefined && target !== null) entry.target = target;
  return entry;
}

/** Writes a file from a stream. */
export async function writeStream(
  native: NativeSandbox,
  write: NativeWrite,
  data: AsyncIterable<unknown>,
  cancel?: Cancel,
  signal?: AbortSignal,
) {
  const writer: NativeFileWriter = await native.fileWriter(write);
  const pieces = data[Symbol.asyncIterator]();
  const over = newCancel();
  const lost = writer.lost(over);
  lost.catch(() => {});
  try {
    for (;;) {
      // A source may stall forever: the signal and the end of the sandbox must still end the call.
      const next = await unlessAborted(Promise.race([pieces.next(), lost]), signal);
      if (next.done) return await writer.finish();
      await writer.write(check.bytes('a piece of data', next.value), cancel);
    }
  } catch (error) {
    // Not awaited: a stalled source may not return either.
    pieces.return?.().catch(() => {});
    throw error;
  } finally {
    over.cancel();
    writer.abandon();
  }
}

/** Reads a file as a stream. */
export async function* pieces(
  native: NativeSandbox,
  site: CallSite,
  path: string,
  options: StreamOptions,
): AsyncGenerator<Uint8Array, undefined> {
  const reader = await call(site, async () =>
    native.fileReader(
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
