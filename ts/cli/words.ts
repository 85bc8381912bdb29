/** Errors as people read them, who have no use for the place in our code where they came up. */
import { SandboxError } from '../errors';

const SYSTEM: Record<string, string> = {
  ENOENT: 'there is no such file',
  EACCES: 'you may not',
  EPERM: 'you may not',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is no folder',
  EEXIST: 'it is there already',
  ENOSPC: 'the disk is full',
  EROFS: 'it is on a disk that may not be written',
};

const DOING: Record<string, string> = {
  open: 'open',
  read: 'read',
  scandir: 'read',
  stat: 'find',
  lstat: 'find',
  mkdir: 'make',
};

/** The error in words; nothing for one that only a programmer can mend. */
export function inWords(error: unknown): string | undefined {
  if (error instanceof SandboxError) return `${error.message} (${error.code})`;
  const { code = '', syscall, path, message } = error as NodeJS.ErrnoException;
  // It says itself what to do, and there is no place in the code that would say more.
  if (/ has no native addon for /.test(message)) return message;
  // Only what the system said: a fault of ours may have a code of its own.
  if (syscall === undefined) return undefined;
  if (path === undefined || SYSTEM[code] === undefined) return message;
  return `cannot ${DOING[syscall] ?? syscall} ${JSON.stringify(path)}: ${SYSTEM[code]}`;
}
