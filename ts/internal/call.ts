/**
 * The only way from a public method to a native call and back.
 *
 * A native error becomes a {@link SandboxError} whose stack points at the caller of the public method. An aborted call
 * rejects with `signal.reason`.
 */
import { SandboxError, type SandboxErrorCode } from '../errors';
import type { Cancel } from './binding';
import { newCancel } from './native';

/** A place in the caller's code. Its text is made only if an error needs it. */
export interface CallSite {
  stack?: string;
}

/** Where `method` was called from. */
export function callSite(method: (...args: never[]) => unknown): CallSite {
  const site: CallSite = {};
  Error.captureStackTrace(site, method);
  return site;
}

interface NativeError {
  code?: string;
  message?: string;
  details?: string;
}

const ABORTED = 'ABORTED';

/** End of a message about a problem of the machine. */
export const SEE_DOCTOR = '. To find out what is wrong, run: npx cofferdam doctor';

/** Sets an error's stack to that of the public call. */
export function at<E extends Error>(site: CallSite, error: E): E {
  const frames = site.stack?.split('\n').slice(1).join('\n');
  if (frames) error.stack = `${error.name}: ${error.message}\n${frames}`;
  return error;
}

function translate(site: CallSite, cause: unknown): unknown {
  if (cause instanceof SandboxError) return at(site, cause);
  const { code, message, details } = cause as NativeError;
  if (typeof code !== 'string' || typeof details !== 'string') return cause;
  const text = code === 'ENGINE_UNAVAILABLE' ? `${message}${SEE_DOCTOR}` : (message ?? '');
  return at(site, new SandboxError(code as SandboxErrorCode, text, JSON.parse(details)));
}

/** Runs a native call; `make` may itself throw a {@link SandboxError}. */
export async function call<T>(site: CallSite, make: () => Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    throw translate(site, error);
  }
}

export function checkSignal(site: CallSite, signal: AbortSignal): void {
  if (typeof signal?.addEventListener !== 'function') {
    throw at(site, new SandboxError('INVALID_ARGUMENT', 'signal must be an AbortSignal'));
  }
}

/** Same as {@link call}, but rejects with `signal.reason` when `signal` aborts. */
export async function abortable<T>(
  site: CallSite,
  signal: AbortSignal | undefined,
  make: (cancel?: Cancel) => Promise<T>,
): Promise<T> {
  if (signal === undefined) return call(site, make);
  checkSignal(site, signal);
  signal.throwIfAborted();
  const cancel = newCancel(signal);
  const onAbort = () => cancel.cancel();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await make(cancel);
  } catch (error) {
    throw (error as NativeError).code === ABORTED ? signal.reason : translate(site, error);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
