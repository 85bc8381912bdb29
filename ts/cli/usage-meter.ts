/**
 * Polls what sandboxes use. Picks up new ones, and drops those that are gone.
 *
 * Invariant: a sandbox that does not answer delays no other.
 */
import type { SandboxManager } from '../manager';
import type { SandboxInfo, SandboxStats, Scope } from '../options';
import type { Sandbox } from '../sandbox';

/** How long a sandbox may take to answer. */
const ANSWER_TIMEOUT_MS = 2_000;

export interface Usage {
  readonly info: SandboxInfo;
  /** `null` if it did not answer. */
  readonly stats: SandboxStats | null;
  /** Of one processor, since the last poll; `null` at the first. */
  readonly cpuPercent: number | null;
}

/** Which sandboxes; all by default. */
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

  async poll(): Promise<Usage[]> {
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

  /** Undefined for one that is gone by now. */
  async #usageOf(info: SandboxInfo): Promise<Usage | undefined> {
    const link = this.#links.get(info.id) ?? this.#manager.get(info.id);
    this.#links.set(info.id, link);
    try {
      const stats = await withTimeout(link.then((sandbox) => sandbox.stats()));
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

async function withTimeout<T>(work: Promise<T>): Promise<T | null> {
  let late: NodeJS.Timeout | undefined;
  const timeout = new Promise<null>((resolve) => {
    late = setTimeout(resolve, ANSWER_TIMEOUT_MS, null);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(late);
    work.catch(() => {});
  }
}
