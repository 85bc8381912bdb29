/** What went wrong, for programs. Codes never change. */
export type SandboxErrorCode =
  | 'INVALID_ARGUMENT'
  | 'ENGINE_UNAVAILABLE'
  | 'IMAGE_NOT_FOUND'
  | 'IMAGE_NOT_ALLOWED'
  | 'POLICY_DENIED'
  | 'SANDBOX_NOT_FOUND'
  | 'SANDBOX_CLOSED'
  | 'SANDBOX_LOST'
  | 'PROCESS_NOT_FOUND'
  | 'COMMAND_NOT_FOUND'
  | 'COMMAND_FAILED'
  | 'FILE_NOT_FOUND'
  | 'FILE_EXISTS'
  | 'NOT_A_DIRECTORY'
  | 'IS_A_DIRECTORY'
  | 'PERMISSION_DENIED'
  | 'PATH_BLOCKED'
  | 'LIMIT_EXCEEDED'
  | 'TIMED_OUT'
  | 'UNSUPPORTED'
  | 'PROTOCOL'
  | 'INTERNAL';

/**
 * The only error class of this package. A command that fails is a result, not an error, except with `reject: true`. An
 * aborted call rejects with `signal.reason`.
 *
 * @example
 * ```ts
 * try {
 *   await sandbox.files.read('missing.txt');
 * } catch (error) {
 *   if (error instanceof SandboxError && error.code === 'FILE_NOT_FOUND') console.log('not written yet');
 *   else throw error;
 * }
 * ```
 */
export class SandboxError extends Error {
  /** Identifies errors of another copy of the package, for which `instanceof` fails. */
  override readonly name = 'SandboxError';
  /** What went wrong, for programs. */
  readonly code: SandboxErrorCode;
  /** More about the error, for programs. */
  readonly details: Record<string, unknown>;

  constructor(code: SandboxErrorCode, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}
