/**
 * A process for AI SDK 7, with a stream for each of its outputs.
 *
 * Invariant: no byte is lost silently, and a stream that nobody reads blocks nothing. So each stream follows the process on
 * its own, from its first read. Output that was dropped before that is an error of the stream.
 */
import { SandboxError } from '../errors';
import type { Process } from '../process';
import type { SandboxProcess, WritableSandboxProcess } from './interface';

export function follow(
  process: Process,
  { writable, signal }: { writable: boolean; signal?: AbortSignal },
): SandboxProcess | WritableSandboxProcess {
  const handle: SandboxProcess = {
    pid: process.pid,
    stdout: streamOf(process, 'stdout'),
    stderr: streamOf(process, 'stderr'),
    async wait() {
      // Waits for the end also when aborted, so that nothing of it is left.
      const { exitCode } = await process.wait();
      signal?.throwIfAborted();
      return { exitCode };
    },
    kill: () => process.kill(),
  };
  return writable ? { ...handle, stdin: inputOf(process) } : handle;
}

function streamOf(process: Process, name: 'stdout' | 'stderr'): ReadableStream<Uint8Array> {
  let chunks: AsyncGenerator<Uint8Array> | undefined;
  return new ReadableStream(
    {
      async pull(controller) {
        chunks ??= only(process, name);
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks?.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

async function* only(process: Process, name: 'stdout' | 'stderr'): AsyncGenerator<Uint8Array> {
  let seen = 0;
  for await (const { seq, stream, data } of process) {
    if (seq !== seen + 1) {
      const message = `the middle of the output of ${process.execId} was dropped before its ${name} was read; read it while the process runs`;
      throw new SandboxError('LIMIT_EXCEEDED', message, { execId: process.execId });
    }
    seen = seq;
    if (stream === name) yield data;
  }
}

function inputOf(process: Process): WritableStream<Uint8Array> {
  return new WritableStream({
    write: (data) => process.write(data),
    close: () => process.end(),
    abort: () => process.end(),
  });
}
