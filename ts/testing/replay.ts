/** Replaces the addon by a recording: each call gets its recorded answer. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SandboxError } from '../errors';
import type { NativeManager, NativeTransfer } from '../internal/binding';
import { type FakeCall, toCall } from './calls';
import { isIsolated } from './key';
import { unlessCancelled } from './native-proxy';
import { fromJson, type RecordedCall, type Recording, toKnownArgs } from './recording';

/** Calls that end something: allowed any number of times, recorded or not. */
const SYNC_ENDS = ['stop', 'abandon', 'warmUp', 'exit'];
const ASYNC_ENDS = ['close', 'kill', 'end'];

export class Replay {
  readonly calls: FakeCall[] = [];
  readonly unscripted: string[] = [];
  readonly #left: RecordedCall[];
  readonly #over: Promise<void>;
  #end = () => {};
  #isOver = false;

  constructor({ calls }: Recording) {
    this.#left = [...calls];
    this.#over = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  asNative(): NativeManager {
    return this.#object(0, {}) as unknown as NativeManager;
  }

  #object(on: number, properties: Record<string, unknown>): object {
    return new Proxy(properties, {
      get: (_, name) => {
        if (typeof name === 'symbol' || name === 'then') return undefined;
        if (name in properties) return properties[name];
        if (name === 'isIsolated') return isIsolated;
        return (...args: unknown[]) => this.#call(on, properties, name, args);
      },
    });
  }

  #call(on: number, properties: Record<string, unknown>, method: string, args: unknown[]): unknown {
    const key = typeof properties.key === 'string' ? properties.key : null;
    const call = on === 0 || key !== null ? toCall(key, method, args) : undefined;
    if (call) this.calls.push(call);
    const recorded = this.#take(on, method, toKnownArgs(args));
    if (on === 0 && method === 'close') {
      this.#isOver = true;
      this.#end();
    }
    if (recorded?.isSync) return this.#answer(recorded);
    if (recorded) return this.#replay(recorded, args);
    if (SYNC_ENDS.includes(method)) return undefined;
    if (ASYNC_ENDS.includes(method)) return Promise.resolve();
    if (method === 'events' || (method === 'nextMany' && this.#isOver))
      return method === 'events' ? this.#noEvents() : Promise.resolve([]);
    throw this.#unknown(call?.name ?? method, args);
  }

  /** The first unused call with the same arguments. For open() else the next one: its session may have a random name. */
  #take(on: number, method: string, args: unknown[]): RecordedCall | undefined {
    const wanted = JSON.stringify(args);
    const same = (call: RecordedCall) => call.on === on && call.method === method;
    let at = this.#left.findIndex((call) => same(call) && JSON.stringify(call.args) === wanted);
    if (at < 0 && method === 'open') at = this.#left.findIndex(same);
    return at < 0 ? undefined : this.#left.splice(at, 1)[0];
  }

  #answer({ gave, result }: RecordedCall): unknown {
    return gave ? this.#object(gave.number, fromJson(gave.properties) as Record<string, unknown>) : fromJson(result);
  }

  async #replay(recorded: RecordedCall, args: unknown[]): Promise<unknown> {
    const cancel = args.find((arg) => typeof (arg as { cancel?: unknown } | null)?.cancel === 'function');
    const { error, isPending, progress = [], leaves } = recorded;
    // It was aborted in the recording, or never answered: the same here.
    if (error?.code === 'ABORTED' || isPending) return unlessCancelled(this.#over, cancel).then(() => []);
    if (error) throw Object.assign(new Error(error.message), { code: error.code, details: error.details });
    const callback = args.find((arg) => typeof arg === 'function') as ((progress: unknown) => void) | undefined;
    for (const step of progress) callback?.(fromJson(step));
    if (leaves) leave(leaves, (args[0] as NativeTransfer).hostPath);
    return this.#answer(recorded);
  }

  /** The recording has no events: none until the end. */
  #noEvents(): object {
    return { nextMany: (cancel?: unknown) => unlessCancelled(this.#over, cancel).then(() => []) };
  }

  #unknown(name: string, args: unknown[]): SandboxError {
    if (this.#isOver) return new SandboxError('SANDBOX_CLOSED', 'this manager was closed; make a new one');
    const shown = JSON.stringify(toKnownArgs(args)).slice(0, 300);
    const message = `the recording has no (further) answer for ${name}(${shown.slice(1, -1)}); record it again with this call`;
    this.unscripted.push(message);
    return new SandboxError('UNSUPPORTED', message);
  }
}

function leave(files: Record<string, unknown>, hostPath: string): void {
  for (const [path, content] of Object.entries(files)) {
    const file = path === '' ? hostPath : join(hostPath, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, fromJson(content) as Buffer);
  }
}
