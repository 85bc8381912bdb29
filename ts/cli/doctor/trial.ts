/** Opens, uses, times and closes a real sandbox. */
import { SandboxError } from '../../errors';
import type { SandboxManager } from '../../manager';
import type { Sandbox } from '../../sandbox';
import { within } from './time-limit';

const LIMIT_MS = 60_000;
const CLOSE_MS = 15_000;

/** Shown in lists meanwhile. */
const LABELS = { 'made-by': 'cofferdam doctor' };

const OPENS = 3;
const EXECS = 20;
const CONTENT = 'x'.repeat(4096);

/** Milliseconds; medians, except the first ones. */
export interface Timings {
  readonly image: string;
  readonly firstOpenMs: number;
  readonly openMs: number;
  readonly firstExecMs: number;
  readonly execMs: number;
  /** 4 KiB written and read back. */
  readonly filesMs: number;
}

/** Uses the first image that is present. Pulls none: a check leaves nothing behind. */
export async function tryOut(manager: SandboxManager, images: readonly string[], stop: AbortSignal): Promise<Timings> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(LIMIT_MS)]);
  let missing: unknown;
  for (const image of images) {
    try {
      return await tryImage(manager, image, signal);
    } catch (error) {
      if (!(error instanceof SandboxError) || error.code !== 'IMAGE_NOT_FOUND') throw error;
      missing ??= error;
    }
  }
  throw missing;
}

async function tryImage(manager: SandboxManager, image: string, signal: AbortSignal): Promise<Timings> {
  const first = await opened(manager, image, signal, (sandbox) => use(sandbox, signal));
  const opens = [first.openMs];
  while (opens.length < OPENS) opens.push((await opened(manager, image, signal, async () => {})).openMs);
  return { image, firstOpenMs: rounded(first.openMs), openMs: median(opens), ...first.result };
}

/** Works in a sandbox of its own, which is closed afterwards. */
async function opened<T>(
  manager: SandboxManager,
  image: string,
  signal: AbortSignal,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<{ openMs: number; result: T }> {
  signal.throwIfAborted();
  const began = performance.now();
  // Without the signal: a sandbox that is being created is awaited, so that it can be closed.
  const sandbox = await manager.open({
    image,
    session: 'isolated',
    pull: 'never',
    labels: LABELS,
    timeoutMs: LIMIT_MS,
  });
  const openMs = performance.now() - began;
  try {
    signal.throwIfAborted();
    return { openMs, result: await work(sandbox) };
  } finally {
    await within(CLOSE_MS, 'closing the sandbox', sandbox.close());
  }
}

async function use(sandbox: Sandbox, signal: AbortSignal) {
  const exec = () => timed(() => sandbox.exec(['true'], { signal }));
  const firstExecMs = rounded(await exec());
  const execs: number[] = [];
  const files: number[] = [];
  for (let count = 0; count < EXECS; count += 1) execs.push(await exec());
  for (let count = 0; count < EXECS / 4; count += 1) {
    files.push(
      await timed(async () => {
        await sandbox.files.write('doctor.txt', CONTENT, { signal });
        const back = await sandbox.files.readText('doctor.txt', { signal });
        if (back !== CONTENT) throw new Error('a file had other content than was written');
      }),
    );
  }
  return { firstExecMs, execMs: median(execs), filesMs: median(files) };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return rounded(sorted[Math.floor(sorted.length / 2)] ?? 0);
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
