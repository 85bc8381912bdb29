/** No check may hold up the others: what does not answer is a finding too. */
export class TookTooLong extends Error {
  constructor(what: string, ms: number) {
    super(`${what} did not answer within ${ms / 1000} s`);
  }
}

/** As `work`, given up after `ms`, or when `stop` aborts. */
export async function within<T>(ms: number, what: string, work: Promise<T>, stop?: AbortSignal): Promise<T> {
  let giveUp = (_: unknown) => {};
  const late = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  const timer = setTimeout(() => giveUp(new TookTooLong(what, ms)), ms);
  const onAbort = () => giveUp(stop?.reason);
  stop?.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    stop?.removeEventListener('abort', onAbort);
    // It may still fail when nobody waits any more.
    work.catch(() => {});
  }
}

/** How long something took, as precisely as it matters. */
export function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
