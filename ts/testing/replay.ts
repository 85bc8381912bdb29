/** Plays a recording in the place of the addon: each call gets the answer that it got then. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SandboxError } from '../errors';
import type { NativeManager, NativeTransfer } from '../internal/binding';
import { type FakeCall, toCall } from './calls';
import { unlessCancelled } from './face';
import { fromJson, type RecordedCall, type Recording, toKnownArgs } from './recording';

/** Ends of things: however often, and also where the recording has none. */
const AT_ONCE = ['stop', 'abandon', 'warmUp', 'exit'];
const LATER = ['close', 'kill', 'end'];

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
        return (...args: unknown[]) => this.#call(on, properties, name, args);
      },
    });
  }

  #call(on: number, properties: Record<string, unknown>, method: string, args: unknown[]): unknown {
    const key = typeof properties.key === 'string' ? properties.key : null;
    const told = on === 0 || key !== null ? toCall(key, method, args) : undefined;
    if (told) this.calls.push(told);
    const recorded = this.#take(on, method, toKnownArgs(args));
    if (on === 0 && method === 'close') {
      this.#isOver = true;
      this.#end();
    }
    if (recorded?.isSync) return this.#answer(recorded);
    if (recorded) return this.#replay(recorded, args);
    if (AT_ONCE.includes(method)) return undefined;
    if (LATER.includes(method)) return Promise.resolve();
    if (method === 'events' || (method === 'nextMany' && this.#isOver))
      return method === 'events' ? this.#silence() : Promise.resolve([]);
    throw this.#unknown(told?.name ?? method, args);
  }

  /** The first that is left of those which were just so; for an opening, else the next one: its names may be made up. */
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
    // It was given up then, or never answered: so it is now.
    if (error?.code === 'ABORTED' || isPending) return unlessCancelled(this.#over, cancel).then(() => []);
    if (error) throw Object.assign(new Error(error.message), { code: error.code, details: error.details });
    const callback = args.find((arg) => typeof arg === 'function') as ((told: unknown) => void) | undefined;
    for (const told of progress) callback?.(fromJson(told));
    if (leaves) leave(leaves, (args[0] as NativeTransfer).hostPath);
    return this.#answer(recorded);
  }

  /** Nobody listened then: there is nothing to hear until the end. */
  #silence(): object {
    return { nextMany: (cancel?: unknown) => unlessCancelled(this.#over, cancel).then(() => []) };
  }

  #unknown(name: string, args: unknown[]): SandboxError {
    if (this.#isOver) return new SandboxError('SANDBOX_CLOSED', 'this manager was closed; make a new one');
    const shown = JSON.stringify(toKnownArgs(args)).slice(0, 300);
    const message = `the recording has no (further) answer for ${name}(${shown.slice(1, -1)}); record it again with this call in it`;
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
