/**
 * What sandboxes use, looked at again and again. It finds those that appear, and forgets those that go.
 *
 * Invariant: one that does not answer holds up none of the others.
 */
import type { SandboxManager } from '../manager';
import type { SandboxInfo, SandboxStats, Scope } from '../options';
import type { Sandbox } from '../sandbox';

/** For how long a sandbox may think about it. */
const PATIENCE_MS = 2_000;

export interface Usage {
  readonly info: SandboxInfo;
  /** `null` where it did not answer. */
  readonly stats: SandboxStats | null;
  /** Of one processor, since the last look; `null` at the first. */
  readonly cpuPercent: number | null;
}

/** Without any, all. */
export interface Which {
  readonly scope: Scope | undefined;
  readonly ids: ReadonlySet<string>;
}

interface Sample {
  readonly atMs: number;
  readonly cpuMs: number;
}

export class UsageMeter {
  readonly #manager: SandboxManager;
  readonly #which: Which;
  readonly #links = new Map<string, Promise<Sandbox>>();
  readonly #last = new Map<string, Sample>();

  constructor(manager: SandboxManager, which: Which) {
    this.#manager = manager;
    this.#which = which;
  }

  async look(): Promise<Usage[]> {
    const { scope, ids } = this.#which;
    const all = await this.#manager.list({ scope, state: 'running' });
    const running = all.filter(({ id }) => ids.size === 0 || ids.has(id));
    const known = new Set(running.map(({ id }) => id));
    for (const id of [...this.#links.keys()].filter((id) => !known.has(id))) {
      this.#links.delete(id);
      this.#last.delete(id);
    }
    const found = await Promise.all(running.map((info) => this.#usageOf(info)));
    return found.filter((usage) => usage !== undefined);
  }

  /** Nothing of one that went away meanwhile. */
  async #usageOf(info: SandboxInfo): Promise<Usage | undefined> {
    const link = this.#links.get(info.id) ?? this.#manager.get(info.id);
    this.#links.set(info.id, link);
    try {
      const stats = await answered(link.then((sandbox) => sandbox.stats()));
      const cpuPercent = stats && this.#processorShare(info.id, { atMs: performance.now(), cpuMs: stats.cpuMs });
      return { info, stats, cpuPercent };
    } catch {
      this.#links.delete(info.id);
      return undefined;
    }
  }

  #processorShare(id: string, now: Sample): number | null {
    const last = this.#last.get(id);
    this.#last.set(id, now);
    if (!last || now.atMs <= last.atMs) return null;
    return Math.max(0, ((now.cpuMs - last.cpuMs) / (now.atMs - last.atMs)) * 100);
  }
}

async function answered<T>(asked: Promise<T>): Promise<T | null> {
  let late: NodeJS.Timeout | undefined;
  const patience = new Promise<null>((resolve) => {
    late = setTimeout(resolve, PATIENCE_MS, null);
  });
  try {
    return await Promise.race([asked, patience]);
  } finally {
    clearTimeout(late);
    asked.catch(() => {});
  }
}
