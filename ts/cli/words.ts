/** Errors as messages for people, without a stack. */
import { SandboxError } from '../errors';

const SYSTEM: Record<string, string> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is not a folder',
  EEXIST: 'it already exists',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
};

const VERBS: Record<string, string> = {
  open: 'open',
  read: 'read',
  scandir: 'read',
  stat: 'find',
  lstat: 'find',
  mkdir: 'create',
};

/** The message for people; undefined for a bug, whose stack matters. */
export function inWords(error: unknown): string | undefined {
  if (error instanceof SandboxError) return `${error.message} (${error.code})`;
  const { code = '', syscall, path, message } = error as NodeJS.ErrnoException;
  // Its message says what to do, and a stack would add nothing.
  if (/ has no native addon for /.test(message)) return message;
  // Only errors of the system: a bug may have a code of its own.
  if (syscall === undefined) return undefined;
  if (path === undefined || SYSTEM[code] === undefined) return message;
  return `cannot ${VERBS[syscall] ?? syscall} ${JSON.stringify(path)}: ${SYSTEM[code]}`;
}
