/**
 * A sandbox for AI SDK 7.
 *
 * Invariant: a thin mapping. A missing file is `null` or `false` where AI SDK says so. Every other failure rejects with its
 * `SandboxError`.
 */
import { SandboxError } from '../errors';
import type { Sandbox } from '../sandbox';
import type { CommandOptions, SandboxSession } from './interface';
import { follow } from './process';
import { decode, encode, linesOf } from './text';

/** The result of `run()` cannot say that output was dropped, so the limit is high enough for almost everything. */
const RUN_MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** The limit of the kernel. */
const MAX_LINKS = 40;

/**
 * A sandbox for `experimental_sandbox` of AI SDK 7. Tools get it in their options.
 *
 * @example
 * ```ts
 * const sandbox = await manager.open({ image: 'python' });
 * await generateText({ model, tools, prompt, experimental_sandbox: sandboxSession(sandbox) });
 * ```
 */
export function sandboxSession(sandbox: Sandbox): SandboxSession {
  const { files } = sandbox;

  const readFile: SandboxSession['readFile'] = ({ path, abortSignal }) =>
    unlessMissing(null, async () => startOf(files.stream(path, { signal: abortSignal })));

  const readBinaryFile: SandboxSession['readBinaryFile'] = async (options) => {
    const stream = await readFile(options);
    return stream === null ? null : new Uint8Array(await new Response(stream).arrayBuffer());
  };

  return {
    description:
      `A persistent Linux sandbox with the image ${sandbox.image}. Commands run in ${sandbox.workdir}, and relative paths ` +
      'start there. Files stay between commands.',
    readFile,
    readBinaryFile,
    async readTextFile({ encoding = 'utf-8', startLine, endLine, ...options }) {
      const bytes = await readBinaryFile(options);
      return bytes === null ? null : linesOf(decode(bytes, encoding), startLine, endLine);
    },
    async writeFile({ path, content, abortSignal }) {
      await files.write(path, content, { signal: abortSignal });
    },
    async writeBinaryFile({ path, content, abortSignal }) {
      await files.write(path, content, { signal: abortSignal });
    },
    async writeTextFile({ path, content, encoding = 'utf-8', abortSignal }) {
      await files.write(path, encode(content, encoding), { signal: abortSignal });
    },
    async stat({ path, abortSignal }) {
      abortSignal?.throwIfAborted();
      const entry = await statFollowed(sandbox, path);
      return entry && { type: toType(entry.type), size: entry.sizeBytes };
    },
    async listDirectory({ path, abortSignal }) {
      abortSignal?.throwIfAborted();
      const entries = await unlessMissing(null, () => files.list(path));
      if (entries === null) return null;
      return entries.map(({ name, type }) => ({ name, type: type === 'symlink' ? type : toType(type) }));
    },
    async deleteFile({ path, abortSignal }) {
      abortSignal?.throwIfAborted();
      return files.remove(path);
    },
    spawn: (async ({ stdin, ...options }: CommandOptions & { stdin?: boolean }) => {
      const process = await sandbox.spawn(options.command, toExec(options));
      if (!stdin) await process.end().catch(() => {}); // It may have ended already.
      return follow(process, { writable: stdin === true, signal: options.abortSignal });
    }) as SandboxSession['spawn'],
    async run(options) {
      // The caller limits the time with its signal.
      const limits = { timeoutMs: 0, maxOutputBytes: RUN_MAX_OUTPUT_BYTES };
      const { exitCode, stdout, stderr } = await sandbox.exec(options.command, { ...toExec(options), ...limits });
      return { exitCode, stdout, stderr };
    },
  };
}

function toExec({ workingDirectory, env, abortSignal }: CommandOptions) {
  return { cwd: workingDirectory, env, signal: abortSignal };
}

/** Waits for the first piece, which shows whether the file exists. */
async function startOf(stream: ReadableStream<Uint8Array>): Promise<ReadableStream<Uint8Array>> {
  const reader = stream.getReader();
  let first: Awaited<ReturnType<typeof reader.read>> | undefined = await reader.read();
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = first ?? (await reader.read());
        first = undefined;
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

async function unlessMissing<T, M>(missing: M, look: () => Promise<T>): Promise<T | M> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof SandboxError && error.code === 'FILE_NOT_FOUND') return missing;
    throw error;
  }
}

/** The kernel resolves `..` after a link to a directory, so paths are only extended, never shortened. */
async function statFollowed({ files }: Sandbox, path: string) {
  let entry = await files.stat(path);
  for (let links = 0; entry?.type === 'symlink'; links += 1) {
    if (links === MAX_LINKS) {
      throw new SandboxError('INVALID_ARGUMENT', `${JSON.stringify(path)} leads through more than ${MAX_LINKS} links`);
    }
    const target = entry.target ?? '';
    const folder = entry.path.slice(0, entry.path.lastIndexOf('/'));
    entry = await files.stat(target.startsWith('/') ? target : `${folder}/${target}`);
  }
  return entry;
}

function toType(type: 'file' | 'dir' | 'symlink' | 'other') {
  return type === 'dir' ? 'directory' : type === 'file' ? 'file' : 'other';
}
