/** Calls that report their progress to a callback. */
import type { ProgressCallback } from '../options';
import { unlessAborted } from './abort';
import type { Cancel } from './binding';
import { abortable, type CallSite, checkSignal } from './call';

/**
 * Same as {@link abortable}, with a callback that is called for one step at a time, and awaited before this call resolves. One
 * that throws or rejects aborts the native call, and this one rejects with its error. The addon may deliver a last step
 * after its result: that one is called back, and its error dropped.
 */
export async function reporting<T, Progress>(
  site: CallSite,
  signal: AbortSignal | undefined,
  callback: ProgressCallback<Progress> | undefined,
  make: (cancel?: Cancel, report?: (progress: Progress) => void) => Promise<T>,
): Promise<T> {
  if (callback === undefined) return abortable(site, signal, (cancel) => make(cancel));
  if (signal !== undefined) checkSignal(site, signal);
  signal?.throwIfAborted();
  const stopped = new AbortController();
  const onAbort = () => stopped.abort(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  let reported: Promise<void> = Promise.resolve();
  const report = (progress: Progress) => {
    reported = reported
      .then(() => (stopped.signal.aborted ? undefined : callback(progress)))
      .catch((error) => stopped.abort(error));
  };
  try {
    const result = await abortable(site, stopped.signal, (cancel) => make(cancel, report));
    await unlessAborted(reported, stopped.signal);
    stopped.signal.throwIfAborted();
    return result;
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}
