/** A process's output as it arrives, one batch per native call. */
import type { NativeChunk, NativeProcess } from './binding';
import { type CallSite, call } from './call';

/** Fills a window, so that a fast stream costs few promises. */
const BATCH = 32;

/** Leaving early stops reading, not the process. */
export async function* outputOf(native: NativeProcess, site: CallSite): AsyncGenerator<NativeChunk, undefined> {
  const output = native.output(0);
  try {
    for (;;) {
      const chunks = await call(site, () => output.nextMany(BATCH));
      if (chunks.length === 0) return;
      yield* chunks;
    }
  } finally {
    output.stop();
  }
}
