/** The calls of a fake manager, for tests: with the names and arguments of the public methods. */

/** One call. */
export interface FakeCall {
  /** `open`, `exec`, `files.write`… */
  name: string;
  /** The session's key; `null` for calls of the manager. */
  key: string | null;
  /** Its arguments by name, with defaults; bytes as text if they are UTF-8. */
  input: Record<string, unknown>;
}

/** Native method → public name and names of its arguments; `''` is an object whose fields are arguments. */
const NAMES: Record<string, [name: string, ...args: string[]]> = {
  open: ['open', ''],
  get: ['get', 'id'],
  run: ['run', ''],
  runStreaming: ['run', ''],
  endScope: ['endScope', 'scope'],
  pull: ['pull', 'image'],
  prune: ['prune', ''],
  exec: ['exec', '', 'stdin'],
  execStreaming: ['exec', '', 'stdin'],
  spawn: ['spawn', ''],
  terminal: ['terminal', '', 'size'],
  process: ['process', 'execId'],
  setLimits: ['setLimits', 'limits'],
  extend: ['extend', 'idleTimeoutMs', 'maxLifetimeMs'],
  stage: ['stage', 'key', '', 'sha256', 'maxBytes'],
  publish: ['publish', 'path', 'key', 'maxBytes'],
  forward: ['forward', 'port', 'hostPort'],
  close: ['close', 'keepData'],
  writeFile: ['files.write', '', 'data'],
  fileWriter: ['files.write', ''],
  writeMany: ['files.writeMany', 'files'],
  readFile: ['files.read', 'path', 'offset', 'maxBytes'],
  readLines: ['files.readText', 'path', 'fromLine', 'toLine', 'maxBytes'],
  fileReader: ['files.stream', 'path', 'offset', 'maxBytes'],
  stat: ['files.stat', 'path'],
  mkdir: ['files.mkdir', 'path', 'mode'],
  rename: ['files.move', 'from', 'to'],
  copy: ['files.copy', 'from', 'to'],
  remove: ['files.remove', 'path', 'recursive'],
  glob: ['files.glob', ''],
  grep: ['files.grep', ''],
  replace: ['files.replace', ''],
  upload: ['files.upload', ''],
  download: ['files.download', ''],
  watch: ['files.watch', 'path', 'recursive'],
};

/** Calls that no caller made. */
const INTERNAL = ['warmUp', 'exit', 'events', 'isIsolated'];

export function toCall(key: string | null, method: string, args: unknown[]): FakeCall | undefined {
  if (INTERNAL.includes(method)) return undefined;
  if (method === 'list' && key !== null) return toCallAs(key, ['files.list', 'path', 'recursive', 'maxEntries'], args);
  return toCallAs(key, NAMES[method] ?? [method], args);
}

function toCallAs(key: string | null, [name, ...names]: [string, ...string[]], args: unknown[]): FakeCall {
  const input: Record<string, unknown> = {};
  for (const [index, arg] of names.entries()) {
    const value = args[index];
    if (arg === '') Object.assign(input, readable(value));
    else if (value !== undefined && value !== null) input[arg] = readable(value);
  }
  return { name, key, input };
}

/** UTF-8 bytes as text, a command's environment as an object, and no undefined fields. */
function readable(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const text = bytes.toString('utf8');
    return Buffer.from(text).equals(bytes) ? text : new Uint8Array(bytes);
  }
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries.map(([name, each]) => [name, name === 'env' ? environment(each) : readable(each)]));
}

/** Name, value, name, value… as an object. */
export function environment(pairs: readonly string[] | Record<string, string>): Record<string, string> {
  if (!Array.isArray(pairs)) return { ...(pairs as Record<string, string>) };
  return Object.fromEntries(pairs.flatMap((name, at) => (at % 2 === 0 ? [[name, pairs[at + 1]]] : [])));
}
