/** No check may delay the others: one that does not answer is a finding too. */
export class TookTooLong extends Error {
  constructor(what: string, ms: number) {
    super(`${what} did not answer within ${ms / 1000} s`);
  }
}

/** Waits for `work`, and rejects after `ms` or when `stop` aborts. */
export async function within<T>(ms: number, what: string, work: Promise<T>, stop?: AbortSignal): Promise<T> {
  let fail = (_: unknown) => {};
  const late = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const timer = setTimeout(() => fail(new TookTooLong(what, ms)), ms);
  const onAbort = () => fail(stop?.reason);
  stop?.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    stop?.removeEventListener('abort', onAbort);
    // It may still fail after this.
    work.catch(() => {});
  }
}

/** A duration, with useful precision. */
export function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
