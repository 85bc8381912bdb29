/**
 * Makes a fake look like a class of the addon to the real classes. A method that the fake does not have rejects and says
 * so; every call is reported before it runs.
 */
import { SandboxError } from '../errors';

export function nativeProxy<T extends object>(
  fake: Partial<T>,
  of: string,
  onCall: (method: string, args: unknown[]) => void = () => {},
  own: Partial<T> = {},
): T {
  return new Proxy(fake, {
    get(target, name) {
      const value: unknown = name in own ? Reflect.get(own, name) : Reflect.get(target, name, target);
      // A promise would take an object with a "then" for another promise.
      if (typeof name === 'symbol' || name === 'then' || (value !== undefined && typeof value !== 'function'))
        return value;
      return (...args: unknown[]) => {
        onCall(name, args);
        if (typeof value === 'function') return value.apply(target, args);
        throw new SandboxError(
          'UNSUPPORTED',
          `the fake manager does not implement ${of}.${name}(); use a real manager for this test`,
        );
      };
    },
  }) as T;
}

/** Rejects as the addon does when the call is aborted. */
export function unlessCancelled<T>(work: Promise<T>, cancel: unknown, onCancel: () => void = () => {}): Promise<T> {
  const { signal } = (cancel ?? {}) as { signal?: AbortSignal };
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = () => {
      onCancel();
      reject({ code: 'ABORTED', details: '{}', message: 'aborted' });
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
