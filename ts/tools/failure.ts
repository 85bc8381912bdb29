/**
 * Turns an error into a failure for a model.
 *
 * Invariant: a failure contains no stack and nothing of the host. A message that may quote the host (the address of its
 * engine, its store, its paths) is replaced by one of ours. The error itself is in `cause`, where no serialiser finds it.
 */
import { SandboxError, type SandboxErrorCode } from '../errors';
import type { ToolFailure, ToolResult } from './toolset';

/** What was being done when an error came up. It decides which messages may be quoted. */
export type Doing = 'opening' | 'running' | 'working';

const MAX_MESSAGE = 600;

/** These messages may be quoted: they are about the sandbox, or about the input. */
const ABOUT_THE_SANDBOX: readonly SandboxErrorCode[] = [
  'INVALID_ARGUMENT',
  'POLICY_DENIED',
  'SANDBOX_NOT_FOUND',
  'PROCESS_NOT_FOUND',
  'COMMAND_NOT_FOUND',
  'FILE_NOT_FOUND',
  'FILE_EXISTS',
  'NOT_A_DIRECTORY',
  'IS_A_DIRECTORY',
  'PERMISSION_DENIED',
  'PATH_BLOCKED',
  'LIMIT_EXCEEDED',
];

const MAY_BE_QUOTED: Record<Doing, readonly SandboxErrorCode[]> = {
  working: ABOUT_THE_SANDBOX,
  opening: ['INVALID_ARGUMENT', 'LIMIT_EXCEEDED', 'POLICY_DENIED', 'IMAGE_NOT_ALLOWED', 'NOT_A_DIRECTORY'],
  running: [...ABOUT_THE_SANDBOX, 'IMAGE_NOT_ALLOWED'],
};

const IN_OUR_WORDS: Partial<Record<SandboxErrorCode, string>> = {
  INVALID_ARGUMENT: 'the request is not valid here',
  ENGINE_UNAVAILABLE: 'sandboxes are not available at the moment',
  IMAGE_NOT_FOUND: 'image not found locally and could not be pulled',
  SANDBOX_NOT_FOUND: 'there is no such sandbox',
  SANDBOX_CLOSED: 'the sandbox was closed',
  SANDBOX_LOST: 'the sandbox is gone, with all its files and processes',
  FILE_NOT_FOUND: 'there is no such file or object',
  PERMISSION_DENIED: 'permission denied',
  LIMIT_EXCEEDED: 'a limit was exceeded',
  TIMED_OUT: 'timed out',
  UNSUPPORTED: 'this is not supported here',
  PROTOCOL: 'the data that arrived is not the data that was sent',
};

const HINTS: Partial<Record<SandboxErrorCode, string>> = {
  INVALID_ARGUMENT: 'Correct the input and call again.',
  ENGINE_UNAVAILABLE:
    'The input is not the problem. Try again later, or tell the user that the sandbox is not available.',
  IMAGE_NOT_FOUND: 'Use another image, such as linux, python or node.',
  IMAGE_NOT_ALLOWED: 'Use one of the images that are allowed.',
  POLICY_DENIED: 'The policy does not allow this. Ask for less.',
  SANDBOX_NOT_FOUND: 'Leave out sandbox_id to use your own sandbox, or use the sandbox_id that sandbox_open returned.',
  SANDBOX_CLOSED: 'The next call opens a new, empty sandbox.',
  SANDBOX_LOST: 'The next call opens a new, empty sandbox: write your files again.',
  PROCESS_NOT_FOUND:
    'Use an exec_id that sandbox_exec returned for this sandbox. Commands that ended long ago are forgotten.',
  COMMAND_NOT_FOUND: 'Check its name, install it, or pass the command as one string to run it in the shell.',
  FILE_NOT_FOUND: 'Use sandbox_fs_list or sandbox_fs_search to find the file.',
  FILE_EXISTS: 'Choose another path, or set overwrite to true.',
  NOT_A_DIRECTORY: 'A part of the path is a file. Check it with sandbox_fs_list.',
  IS_A_DIRECTORY: 'Use the path of a file in it; sandbox_fs_list shows them.',
  PERMISSION_DENIED: 'Use a path that you can write to, such as one under the working directory.',
  PATH_BLOCKED: 'This path is blocked. Use one under the working directory.',
  LIMIT_EXCEEDED: 'Use smaller or fewer files, or delete files that are not needed.',
  TIMED_OUT: 'Try again.',
};

const KNOWN = new Set<string>([...Object.keys(IN_OUR_WORDS), ...Object.keys(HINTS)]);

/** An error with a hint of its own, in place of the one for its code. */
export class HintedError extends SandboxError {
  constructor(
    code: SandboxErrorCode,
    message: string,
    readonly hint: string,
    override readonly cause?: unknown,
  ) {
    super(code, message);
  }
}

/** For a promise's `catch`: gives errors of this code a better hint and, if given, another message. */
export function hinting(code: SandboxErrorCode, hint: string, message?: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof SandboxError) || error.code !== code) throw error;
    throw new HintedError(code, message ?? error.message, hint, error);
  };
}

/** What was being done when an error came up, where it was not work in the sandbox. */
const doings = new WeakMap<object, Doing>();

/** Records on each error of `work` what was being done. */
export async function during<T>(doing: Doing, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (typeof error === 'object' && error !== null) doings.set(error, doing);
    throw error;
  }
}

/** The failure that a model reads. */
export function toFailure(error: unknown): ToolFailure {
  const failure = asSandboxError(error);
  return Object.defineProperty(failure, 'cause', { value: error, enumerable: false });
}

function asSandboxError(error: unknown): ToolFailure {
  const { code, message } = (error ?? {}) as Partial<SandboxError>;
  // Not instanceof: the error may come from another copy of the package.
  if (typeof code !== 'string' || typeof message !== 'string' || !KNOWN.has(code)) {
    const hint = 'The input is probably not the problem. Try again, or another way.';
    return { ok: false, error: 'internal error in the tool', code: 'INTERNAL', hint };
  }
  const doing = doings.get(error as object) ?? 'working';
  const hint = error instanceof HintedError ? error.hint : HINTS[code];
  return { ok: false, error: wording(error as SandboxError, doing), code, ...(hint && { hint }) };
}

function wording({ code, message, details }: SandboxError, doing: Doing): string {
  // The core marks what quotes the host's engine or store.
  const quotesHost = details?.origin !== undefined;
  if (MAY_BE_QUOTED[doing].includes(code) && !quotesHost) {
    // The end often says what to do.
    const half = MAX_MESSAGE / 2;
    return message.length > MAX_MESSAGE ? `${message.slice(0, half)}…${message.slice(-half)}` : message;
  }
  const words = IN_OUR_WORDS[code] ?? 'the call failed';
  const about = code === 'IMAGE_NOT_FOUND' ? details?.image : code === 'SANDBOX_LOST' ? details?.reason : undefined;
  return typeof about === 'string' ? `${words} (${about.slice(0, 100)})` : words;
}

/**
 * Whether a call failed. A command that exits with an error is not a failure of the call.
 *
 * @example
 * ```ts
 * const tools = createToolset(manager);
 * const result = await tools.call('sandbox_exec', { command: 'ls' });
 * if (isToolFailure(result)) console.error(result.code, result.error);
 * ```
 */
export function isToolFailure(result: ToolResult): result is ToolFailure {
  return result.ok === false && typeof result.code === 'string' && typeof result.error === 'string';
}
