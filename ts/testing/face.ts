/**
 * The face that a fake shows to the real classes: all that the addon's class has. What the fake does not do is refused in
 * words, and every call is told before it is done.
 */
import { SandboxError } from '../errors';

export function face<T extends object>(
  fake: Partial<T>,
  of: string,
  told: (method: string, args: unknown[]) => void = () => {},
  own: Partial<T> = {},
): T {
  return new Proxy(fake, {
    get(target, name) {
      const value: unknown = name in own ? Reflect.get(own, name) : Reflect.get(target, name, target);
      // A promise would take what has a "then" for another promise.
      if (typeof name === 'symbol' || name === 'then' || (value !== undefined && typeof value !== 'function'))
        return value;
      return (...args: unknown[]) => {
        told(name, args);
        if (typeof value === 'function') return value.apply(target, args);
        throw new SandboxError('UNSUPPORTED', `the fake manager has no ${of}.${name}(): use a real one for this test`);
      };
    },
  }) as T;
}

/** Rejects, as the addon does, when the call is given up. */
export function unlessCancelled<T>(work: Promise<T>, cancel: unknown, onCancel: () => void = () => {}): Promise<T> {
  const { signal } = (cancel ?? {}) as { signal?: AbortSignal };
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      onCancel();
      reject({ code: 'ABORTED', details: '{}', message: 'aborted' });
    };
    if (signal.aborted) return giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
