/** Follows a process: feeds its input, calls back with its output, kills it on an abort. */
import type { ExecOptions } from '../options';
import type { Process } from '../process';
import type { NativeProcess } from './binding';
import * as check from './check';

type Input = NonNullable<ExecOptions['stdin']>;

export function isStream(stdin: Input | undefined): stdin is Exclude<Input, string | Uint8Array> {
  return typeof stdin === 'object' && !ArrayBuffer.isView(stdin) && Symbol.asyncIterator in stdin;
}

/**
 * A command may end without reading its input: that is no error. A source that fails is one, and kills the command.
 */
export async function feed(process: Process, input: Input): Promise<void> {
  if (isStream(input)) {
    try {
      for await (const piece of input as AsyncIterable<Uint8Array | string>) {
        const bytes = check.bytes('a piece of stdin', piece);
        // Leaving the loop ends the source.
        if (
          await process.write(bytes).then(
            () => false,
            () => true,
          )
        )
          break;
      }
    } catch (error) {
      await process.kill().catch(() => {});
      throw error;
    }
  } else {
    await process.write(check.bytes('stdin', input)).catch(() => {});
  }
  await process.end().catch(() => {});
}

/** Calls back for each chunk. A callback that throws or rejects kills the process. */
export async function follow(
  process: Process,
  options: Pick<ExecOptions, 'onStdout' | 'onStderr' | 'signal'>,
): Promise<void> {
  try {
    for await (const chunk of process) {
      const callback = chunk.stream === 'stdout' ? options.onStdout : options.onStderr;
      await callback?.(chunk.text);
    }
  } catch (error) {
    await process.kill().catch(() => {});
    throw options.signal?.aborted ? options.signal.reason : error;
  }
  if (options.signal?.aborted) {
    await process.kill().catch(() => {});
    throw options.signal.reason;
  }
}

/** Kills the process when the signal aborts. Returns a function that cancels this. */
export function endOnAbort(native: NativeProcess, signal: AbortSignal): () => void {
  const onAbort = () => {
    native.kill().catch(() => {});
  };
  signal.addEventListener('abort', onAbort, { once: true });
  return () => signal.removeEventListener('abort', onAbort);
}
