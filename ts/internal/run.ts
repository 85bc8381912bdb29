/** Converts a run request to the addon's form, with defaults, and the result back. */
import type { OpenOptions, RunRequest, RunResult } from '../options';
import { Process } from '../process';
import type { Cancel, NativeManager, NativeRun, NativeRunResult } from './binding';
import * as check from './check';
import { toExecResult } from './command';
import { follow } from './follow';
import { merge, toNativeOpen } from './open';

export const RUN_TIMEOUT_MS = 2 * 60_000;
const MAX_OUTPUT_BYTES = 200_000;
const MAX_ARTIFACT_BYTES = 10_000_000;
const MAX_ARTIFACTS = 100;
const RUNTIMES = ['python', 'node', 'bash'];

/**
 * A run takes the manager's defaults, except those of sessions and the image: without an image, the runtime selects it.
 */
export function toNativeRun(defaults: OpenOptions, request: RunRequest): NativeRun {
  const { runtime = 'python' } = check.object('request', request);
  if (!RUNTIMES.includes(runtime)) throw check.invalid('runtime', '"python", "node" or "bash"', runtime);
  check.optionalFunction('onStdout', request.onStdout);
  check.optionalFunction('onStderr', request.onStderr);
  const { image, env, files, packages, limits, network = defaults.network } = request;
  const { scope: _scope, session: _session, persist: _persist, init: _init, ...rest } = defaults;
  return {
    runtime,
    open: toNativeOpen({ ...merge(rest, { env, files, limits }), image, network, packages: packages ?? rest.packages }),
    code: check.text('code', request.code),
    args: check.list('args', request.args),
    artifacts: check.list('artifacts', request.artifacts),
    timeoutMs: check.timeout('timeoutMs', request.timeoutMs ?? RUN_TIMEOUT_MS),
    maxOutputBytes: check.count('maxOutputBytes', request.maxOutputBytes ?? MAX_OUTPUT_BYTES),
    maxArtifactBytes: check.count('maxArtifactBytes', request.maxArtifactBytes ?? MAX_ARTIFACT_BYTES),
    maxArtifacts: check.count('maxArtifacts', request.maxArtifacts ?? MAX_ARTIFACTS),
  };
}

/** Calls back with the program's output while it runs. The sandbox stays until all of it was delivered. */
export async function runStreaming(
  manager: NativeManager,
  run: NativeRun,
  callbacks: Pick<RunRequest, 'onStdout' | 'onStderr' | 'signal'>,
  cancel: Cancel | undefined,
): Promise<NativeRunResult> {
  const running = await manager.runStreaming(run, cancel);
  const program = await running.program();
  try {
    if (program) await follow(new Process(program), callbacks);
  } catch (error) {
    // The callback failed and the program was killed: its sandbox ends with it.
    await running.result().catch(() => {});
    throw error;
  }
  return running.result();
}

export function toRunResult(runtime: string, native: NativeRunResult): RunResult {
  return {
    ...toExecResult(native.exec),
    runtime,
    image: native.image,
    artifacts: native.artifacts.map(({ path, sizeBytes, content, omitted }) => ({
      path,
      sizeBytes,
      content: content ?? null,
      ...(omitted && { omitted }),
    })),
    phases: native.phases,
  };
}
