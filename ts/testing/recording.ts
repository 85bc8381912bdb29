/** A recording: plain JSON of calls to the addon and their answers. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';

/** One call of the addon, below the public classes. */
export interface RecordedCall {
  /** The object that was called: 0 is the manager, others have the number from `gave`. */
  on: number;
  /** Its name in the addon. */
  method: string;
  /** What the call is matched by; long contents by their digest. */
  args: unknown[];
  /** What it returned. */
  result?: unknown;
  /** What it rejected with, or threw. */
  error?: { code?: string; message: string; details?: string };
  /** It returned an object with methods of its own. */
  gave?: { number: number; properties: Record<string, unknown> };
  /** The progress it reported. */
  progress?: unknown[];
  /** Files that a download wrote on the host, by path below its target. */
  leaves?: Record<string, unknown>;
  /** It returned synchronously. */
  isSync?: true;
  /** It had not answered when the recording was taken. */
  isPending?: true;
}

/** Made by `recordManager`, replayed by `createFakeManager`. */
export interface Recording {
  /** The version of this format. */
  recording: 1;
  /** In order of their start. */
  calls: RecordedCall[];
}

export function isRecording(script: object): script is Recording {
  return 'recording' in script && Array.isArray((script as Recording).calls);
}

/** Longer contents are matched by their digest. */
const MAX_KNOWN_BYTES = 4096;

/** To plain JSON; bytes as text if they are UTF-8. */
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

/** What a call is matched by: not by its signal and callbacks, and by the last name only of a path on the host. */
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
