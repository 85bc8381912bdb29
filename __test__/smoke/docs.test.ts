import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { type Fence, fencesOf, isGenerated, pages, ROOT } from '../docs/pages';
import { describeWithEngine } from '../support';

const run = promisify(execFile);

/** What needs more than a test has is marked `no-run`; `__test__/docs/types.test.ts` sees to that. */
const isRun = ({ language, flags }: Fence) => language === 'js' && !flags.includes('no-run');
const all = pages.filter((page) => !isGenerated(page)).flatMap((page) => fencesOf(page).filter(isRun));

/** Snippets that name the same scope run one after the other: they would see, and end, each other's sandboxes. */
const scopesOf = ({ code }: Fence) =>
  [...code.matchAll(/\b(workflow|agent|user): '([^']+)'/g)].map(([, kind, name]) => `${kind}:${name}`);

const AT_ONCE = 4;

/** Work side by side, so much at once, and nothing beside what it shares a name with. */
class Turns {
  readonly #last = new Map<string, Promise<unknown>>();
  readonly #waiting: (() => void)[] = [];
  #free = AT_ONCE;

  take<T>(names: string[], work: () => Promise<T>): Promise<T> {
    const done = this.#inTurn(
      names.map((name) => this.#last.get(name)),
      work,
    );
    for (const name of names) this.#last.set(name, done);
    return done;
  }

  async #inTurn<T>(before: (Promise<unknown> | undefined)[], work: () => Promise<T>): Promise<T> {
    await Promise.allSettled(before);
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free--;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}

describeWithEngine('the documentation', () => {
  const turns = new Turns();
  let folder: string;
  let outputs: Map<Fence, Promise<string>>;

  beforeAll(() => {
    // Inside the checkout, so that `import 'cofferdam'` finds the package itself.
    folder = mkdtempSync(path.join(ROOT, '.cache-snippets-'));
    outputs = new Map(all.map((fence) => [fence, turns.take(scopesOf(fence), () => outputOf(fence))]));
    // Each is awaited by its own test.
    for (const output of outputs.values()) output.catch(() => {});
  });
  afterAll(async () => {
    await Promise.allSettled(outputs.values());
    rmSync(folder, { recursive: true });
  });

  async function outputOf({ page, line, code }: Fence): Promise<string> {
    const file = path.join(folder, `${page.replaceAll('/', '-')}-${line}.mjs`);
    writeFileSync(file, code);
    const { stdout } = await run(process.execPath, [file], { timeout: 60_000 });
    return stdout;
  }

  test('shows the README’s example', async () => {
    const [example, ...others] = all.filter(({ page }) => page === 'README.md');
    expect(others).toEqual([]);
    expect(example?.code.trim().split('\n').length).toBeLessThanOrEqual(16);
    expect(await outputs.get(example as Fence)).toBe('0 45\n\nstep 1\nstep 2\nstep 3\ntrue\n');
  });

  test.each(all.map((fence) => [fence.page, fence.line, fence] as const))(
    '%s:%d runs as it stands',
    async (_page, _line, fence) => {
      await outputs.get(fence);
    },
    // A hang guard: the last one waits for all before it.
    600_000,
  );
});
