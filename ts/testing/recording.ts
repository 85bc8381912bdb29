/** What a recording is: plain JSON of what the addon was asked, and what it answered. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';

/** One call below the public classes. */
export interface RecordedCall {
  /** Which object was called: 0 is the manager, others have the number they were given with. */
  on: number;
  /** By the name it has below the public classes. */
  method: string;
  /** By which the call is known again; of long contents only their digest. */
  args: unknown[];
  /** What it answered. */
  result?: unknown;
  /** What it rejected with, or threw. */
  error?: { code?: string; message: string; details?: string };
  /** It gave an object with calls of its own. */
  gave?: { number: number; properties: Record<string, unknown> };
  /** What it told on the way. */
  progress?: unknown[];
  /** Files that a download left on the host, from the path it was given. */
  leaves?: Record<string, unknown>;
  /** It answered at once, without a promise. */
  isSync?: true;
  /** It had not answered when the recording was taken. */
  isPending?: true;
}

/** Made by `recordManager`, played by `createFakeManager`. */
export interface Recording {
  /** The version of this form. */
  recording: 1;
  /** In the order in which they began. */
  calls: RecordedCall[];
}

export function isRecording(script: object): script is Recording {
  return 'recording' in script && Array.isArray((script as Recording).calls);
}

/** Longer contents are known by their digest. */
const MAX_KNOWN_BYTES = 4096;

/** To plain JSON; bytes as text where they are text. */
export function toJson(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const text = bytes.toString('utf8');
    return Buffer.from(text).equals(bytes) ? { $text: text } : { $base64: bytes.toString('base64') };
  }
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries.map(([name, each]) => [name, toJson(each)]));
}

export function fromJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromJson);
  if (typeof value !== 'object' || value === null) return value;
  const { $text, $base64 } = value as { $text?: string; $base64?: string };
  if (typeof $text === 'string') return Buffer.from($text);
  if (typeof $base64 === 'string') return Buffer.from($base64, 'base64');
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fromJson(each)]));
}

/** What a call is known by. Not by its signal and its callbacks, and of a path on the host only by the last name. */
export function toKnownArgs(args: unknown[]): unknown[] {
  const known = args.map((arg) => {
    const isOnlyHere = typeof arg === 'function' || typeof (arg as { cancel?: unknown } | null)?.cancel === 'function';
    return isOnlyHere || arg === undefined ? null : shortened(toJson(withoutFolder(arg)), arg);
  });
  while (known.length > 0 && known.at(-1) === null) known.pop();
  return known;
}

function withoutFolder(arg: unknown): unknown {
  const { hostPath } = (arg ?? {}) as { hostPath?: unknown };
  return typeof hostPath === 'string' ? { ...(arg as object), hostPath: basename(hostPath) } : arg;
}

function shortened(json: unknown, arg: unknown): unknown {
  if (!ArrayBuffer.isView(arg) || arg.byteLength <= MAX_KNOWN_BYTES) return json;
  const bytes = Buffer.from(arg.buffer, arg.byteOffset, arg.byteLength);
  return { $sha256: createHash('sha256').update(bytes).digest('hex'), sizeBytes: bytes.length };
}
