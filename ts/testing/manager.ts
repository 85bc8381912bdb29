/** Fake managers, from a script or a recording. */
import type { NativeManagerOptions } from '../internal/binding';
import * as check from '../internal/check';
import { SandboxManager } from '../manager';
import type { SandboxManagerOptions } from '../options';
import type { FakeCall } from './calls';
import { FakeEngine } from './engine';
import { isRecording, type Recording } from './recording';
import { Replay } from './replay';
import type { FakeScript } from './script';

/** What replaces the addon. */
type Replacement = FakeEngine | Replay;

/** A {@link SandboxManager} without an engine, which records its calls. */
export class FakeManager extends SandboxManager {
  readonly #replacement: Replacement;

  /** @internal */
  constructor(options: SandboxManagerOptions, replace: (native: NativeManagerOptions) => Replacement) {
    let replacement: Replacement | undefined;
    super(options, (native) => {
      replacement = replace(native);
      return replacement.asNative();
    });
    this.#replacement = replacement as unknown as Replacement;
  }

  /** Its calls in order, with the names and arguments of the public methods. */
  get calls(): readonly FakeCall[] {
    return this.#replacement.calls;
  }

  /** Calls that the script does not answer, each with what to add: for tests of code that swallows errors. */
  get unscripted(): readonly string[] {
    return this.#replacement.unscripted;
  }
}

/**
 * Creates a manager for unit tests: no engine, no addon, sandboxes in memory. Files work; commands behave as the script
 * says, and an unknown one rejects with what to add. A recording of {@link recordManager} is a script, too.
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
