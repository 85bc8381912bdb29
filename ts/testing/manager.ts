/** Fake managers, for a script that was written or recorded. */
import type { NativeManagerOptions } from '../internal/binding';
import * as check from '../internal/check';
import { SandboxManager } from '../manager';
import type { SandboxManagerOptions } from '../options';
import type { FakeCall } from './calls';
import { FakeEngine } from './engine';
import { isRecording, type Recording } from './recording';
import { Replay } from './replay';
import type { FakeScript } from './script';

/** What stands in the place of the addon. */
type Stand = FakeEngine | Replay;

/** A {@link SandboxManager} without an engine, which tells what was asked of it. */
export class FakeManager extends SandboxManager {
  readonly #stand: Stand;

  /** @internal */
  constructor(options: SandboxManagerOptions, makeStand: (native: NativeManagerOptions) => Stand) {
    let stand: Stand | undefined;
    super(options, (native) => {
      stand = makeStand(native);
      return stand.asNative();
    });
    this.#stand = stand as unknown as Stand;
  }

  /** What was asked, in order: with names and arguments as the public methods have them. */
  get calls(): readonly FakeCall[] {
    return this.#stand.calls;
  }

  /** What the script has no answer for, each with what to add: for tests of code that swallows errors. */
  get unscripted(): readonly string[] {
    return this.#stand.unscripted;
  }
}

/**
 * A manager for unit tests: no engine, no addon, sandboxes in memory. Files work; commands go as the script says, and one
 * that it does not know rejects with what to add. A recording of {@link recordManager} is a script, too.
 *
 * @example
 * ```ts
 * const manager = createFakeManager({
 *   exec: [
 *     { command: 'python main.py', stdout: '42\n', files: { 'out.csv': 'a,b\n' } },
 *     { command: /^pip install /, delayMs: 20 },
 *     { command: ['git', 'push'], exitCode: 1, stderr: 'denied\n' },
 *   ],
 * });
 * ```
 */
export function createFakeManager(
  script: FakeScript | Recording = {},
  options: SandboxManagerOptions = {},
): FakeManager {
  check.object('script', script);
  if (isRecording(script)) return new FakeManager(options, () => new Replay(script));
  const hasStore = options.store !== undefined || script.objects !== undefined;
  const store = hasStore ? ({ type: 'memory' } as const) : undefined;
  return new FakeManager({ ...options, store }, (native) => new FakeEngine(script, native, hasStore));
}
