/**
 * From an error to what a model reads of it.
 *
 * Invariant: no stack, and nothing of the host: an error that may quote the host (its engine's address, its store, its
 * paths) is told in words of ours. The error itself is in `cause`, where no serialiser finds it.
 */
import { SandboxError, type SandboxErrorCode } from '../errors';
import type { ToolFailure, ToolResult } from './toolset';

/** What was being done: a message may quote whom it was done with. */
export type Doing = 'opening' | 'running' | 'working';

const MAX_MESSAGE = 600;

/** What may be quoted: these are about the sandbox, or about what the model asked for. */
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

/** How the engine's own words begin, whatever the code. */
const ENGINES_WORDS = 'the engine could not';

const IN_OUR_WORDS: Partial<Record<SandboxErrorCode, string>> = {
  INVALID_ARGUMENT: 'what was asked for is not valid here',
  ENGINE_UNAVAILABLE: 'sandboxes cannot be reached at the moment',
  IMAGE_NOT_FOUND: 'the image is not there, and could not be had',
  SANDBOX_NOT_FOUND: 'there is no such sandbox',
  SANDBOX_CLOSED: 'the sandbox was closed',
  SANDBOX_LOST: 'the sandbox is gone, with all its files and processes',
  FILE_NOT_FOUND: 'there is no such file or object',
  PERMISSION_DENIED: 'this is not permitted',
  LIMIT_EXCEEDED: 'this is more than is allowed',
  TIMED_OUT: 'there was no answer in time',
  UNSUPPORTED: 'this cannot be done here',
  PROTOCOL: 'what arrived is not what was sent',
};

const HINTS: Partial<Record<SandboxErrorCode, string>> = {
  INVALID_ARGUMENT: 'Correct the input and call again.',
  ENGINE_UNAVAILABLE:
    'Nothing in the input is wrong. Try again later, or tell the user that the sandbox is not available.',
  IMAGE_NOT_FOUND: 'Use another image, such as linux, python or node.',
  IMAGE_NOT_ALLOWED: 'Use one of the images that are allowed.',
  POLICY_DENIED: 'This is not allowed here; ask for less.',
  SANDBOX_NOT_FOUND: 'Leave sandbox_id out to use your own sandbox, or take the sandbox_id that sandbox_open gives.',
  SANDBOX_CLOSED: 'The next call opens a new, empty sandbox.',
  SANDBOX_LOST: 'The next call opens a new, empty sandbox: write your files again.',
  PROCESS_NOT_FOUND: 'Use an exec_id that sandbox_exec gave in this sandbox; those that ended long ago are forgotten.',
  COMMAND_NOT_FOUND: 'Check its name, install it, or give the command as one string to run it through the shell.',
  FILE_NOT_FOUND: 'Look with sandbox_fs_list or sandbox_fs_search for what is there.',
  FILE_EXISTS: 'Choose another path, or set overwrite to true.',
  NOT_A_DIRECTORY: 'A part of the path is a file. Look with sandbox_fs_list.',
  IS_A_DIRECTORY: 'Name a file in it; sandbox_fs_list shows them.',
  PERMISSION_DENIED: 'Use a path that you may write, such as one under the working directory.',
  PATH_BLOCKED: 'This path is off limits. Use one under the working directory.',
  LIMIT_EXCEEDED: 'Use less: smaller or fewer files, or delete what is not needed.',
  TIMED_OUT: 'Try again.',
};

const KNOWN = new Set<string>([...Object.keys(IN_OUR_WORDS), ...Object.keys(HINTS)]);

/** An error that knows better than its code what to try next. */
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

/** For a promise's `catch`: says this one error better; `message` where its own may not be shown, or means nothing here. */
export function hinting(code: SandboxErrorCode, hint: string, message?: string): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof SandboxError) || error.code !== code) throw error;
    throw new HintedError(code, message ?? error.message, hint, error);
  };
}

/** What was being done when an error came up, where that is not plain work in the sandbox. */
const doings = new WeakMap<object, Doing>();

/** Marks what goes wrong in `work` as come up in doing so. */
export async function during<T>(doing: Doing, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (typeof error === 'object' && error !== null) doings.set(error, doing);
    throw error;
  }
}

/** What a model reads of an error. */
export function toFailure(error: unknown): ToolFailure {
  const failure = asSandboxError(error);
  return Object.defineProperty(failure, 'cause', { value: error, enumerable: false });
}

function asSandboxError(error: unknown): ToolFailure {
  const { code, message } = (error ?? {}) as Partial<SandboxError>;
  // Not instanceof: the error may be another copy of the package's.
  if (typeof code !== 'string' || typeof message !== 'string' || !KNOWN.has(code)) {
    const hint = 'Nothing in the input is known to be wrong. Try again, or another way.';
    return { ok: false, error: 'the tool failed, by a fault of its own', code: 'INTERNAL', hint };
  }
  const doing = doings.get(error as object) ?? 'working';
  const hint = error instanceof HintedError ? error.hint : HINTS[code];
  return { ok: false, error: wording(error as SandboxError, doing), code, ...(hint && { hint }) };
}

function wording({ code, message, details }: SandboxError, doing: Doing): string {
  // A store's error says which store it was.
  const isOfHost = message.startsWith(ENGINES_WORDS) || details?.store !== undefined;
  if (MAY_BE_QUOTED[doing].includes(code) && !isOfHost) {
    // The end often says what to do.
    const half = MAX_MESSAGE / 2;
    return message.length > MAX_MESSAGE ? `${message.slice(0, half)}…${message.slice(-half)}` : message;
  }
  const words = IN_OUR_WORDS[code] ?? 'this did not work';
  const about = code === 'IMAGE_NOT_FOUND' ? details?.image : code === 'SANDBOX_LOST' ? details?.reason : undefined;
  return typeof about === 'string' ? `${words} (${about.slice(0, 100)})` : words;
}

/**
 * Whether a call could not be carried out. A command that fails is no such thing.
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
