/** Records the calls of a real manager and their answers, without changing either. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { NativeManager, NativeTransfer } from '../internal/binding';
import type { SandboxManager } from '../manager';
import { type RecordedCall, type Recording, toJson, toKnownArgs } from './recording';

export type { RecordedCall, Recording } from './recording';

/** Internal calls, which the recorded manager makes itself. */
const INTERNAL = ['warmUp', 'exit'];

/** Answers that are always the same: a replay knows them. */
const RULES = ['isIsolated'];

type Method = (...args: unknown[]) => unknown;

/**
 * Returns a manager that works like the given one, and a script of what happened: plain JSON, which `createFakeManager`
 * replays without an engine. Calls are matched by their arguments, and by their order if these are equal.
 *
 * @example
 * ```ts
 * const { manager, script } = recordManager(new SandboxManager());
 * await yourAgent(manager);
 * await manager.close();
 * writeFileSync('agent.recording.json', JSON.stringify(script()));
 * ```
 */
export function recordManager(manager: SandboxManager): { manager: SandboxManager; script(): Recording } {
  const recorder = new Recorder();
  const recorded = manager.seenThrough((native) => recorder.watch(native, 0) as NativeManager);
  return { manager: recorded, script: () => structuredClone({ recording: 1, calls: recorder.calls }) };
}

class Recorder {
  readonly calls: RecordedCall[] = [];
  #objects = 0;

  watch(target: object, on: number): object {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof name === 'symbol' || typeof value !== 'function') return value;
        if (INTERNAL.includes(name)) return () => {};
        if (RULES.includes(name)) return value.bind(target);
        return (...args: unknown[]) => this.#call(target, on, name, value as Method, args);
      },
    });
  }

  #call(target: object, on: number, method: string, work: Method, args: unknown[]): unknown {
    const call: RecordedCall = { on, method, args: toKnownArgs(args), isPending: true };
    this.calls.push(call);
    const answer = work.apply(
      target,
      args.map((arg) => (typeof arg === 'function' ? listening(call, arg as Method) : arg)),
    );
    if (!isPromise(answer)) {
      call.isSync = true;
      return this.#answered(call, answer);
    }
    return answer.then(
      async (value) => {
        if (method === 'download') call.leaves = await downloadedFiles(target, work, args);
        return this.#answered(call, value);
      },
      (error) => {
        delete call.isPending;
        const { code, message, details } = error as { code?: string; message: string; details?: string };
        call.error = { code, message, details };
        throw error;
      },
    );
  }

  #answered(call: RecordedCall, value: unknown): unknown {
    delete call.isPending;
    if (!isNative(value)) {
      if (value !== undefined) call.result = toJson(value);
      return value;
    }
    this.#objects += 1;
    call.gave = { number: this.#objects, properties: propertiesOf(value) };
    return this.watch(value, this.#objects);
  }
}

function listening(call: RecordedCall, callback: Method): Method {
  return (...args) => {
    call.progress = [...(call.progress ?? []), toJson(args[0])];
    return callback(...args);
  };
}

/** Not instanceof: under jest the addon's promises may come from another realm. */
function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

function isNative(value: unknown): value is object {
  return typeof value === 'object' && value !== null && /^Native/.test(value.constructor?.name ?? '');
}

/** Getters of the addon's classes are on their prototypes. */
function propertiesOf(value: object): Record<string, unknown> {
  const getters = Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(value))).filter(
    ([, { get }]) => get,
  );
  return Object.fromEntries(getters.map(([name]) => [name, toJson(Reflect.get(value, name, value))]));
}

/** The files of a download, downloaded once more to an empty folder. */
async function downloadedFiles(
  target: object,
  download: Method,
  [transfer]: unknown[],
): Promise<Record<string, unknown>> {
  const folder = mkdtempSync(join(tmpdir(), 'cofferdam-recorder-'));
  try {
    const hostPath = join(folder, 'tree');
    await download.call(target, { ...(transfer as NativeTransfer), hostPath, sync: false });
    if (statSync(hostPath).isFile()) return { '': toJson(readFileSync(hostPath)) };
    const entries = readdirSync(hostPath, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const files = entries.map((entry) => join(entry.parentPath, entry.name));
    return Object.fromEntries(files.map((file) => [relative(hostPath, file), toJson(readFileSync(file))]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
