/** What went wrong, for programs. The names never change. */
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
 * The one error of this package. A command that fails is not an error but a result; an aborted call rejects with the
 * signal's own reason.
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
  /** Also known so in another copy of the package, where `instanceof` fails. */
  override readonly name = 'SandboxError';
  /** What went wrong, for programs. */
  readonly code: SandboxErrorCode;
  /** What a program may want to know beyond the code. */
  readonly details: Record<string, unknown>;

  constructor(code: SandboxErrorCode, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.code = code;
    this.details = details;
  }
}
