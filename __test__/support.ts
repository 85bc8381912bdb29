/** What all suites share: whether there is an engine, and managers that clean up after themselves. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { type Sandbox, type SandboxEvent, SandboxManager, type SandboxManagerOptions } from 'cofferdam';
import { isNamespaces } from './ground';

/** The images of `scripts/fixtures.mjs`, one per class; without an engine, the same as folders of `scripts/roots.mjs`. */
export const IMAGES = isNamespaces
  ? { debian: root('debian'), alpine: root('alpine'), empty: root('empty') }
  : { debian: 'ubuntu:22.04', alpine: 'alpine:3.19', empty: 'cofferdam/empty:latest' };

type ImageClass = keyof typeof IMAGES;

/**
 * Classes of images, for suites that are the same on each. On other ways into a sandbox than the first, one class is enough:
 * `COFFERDAM_TEST_IMAGES` names it.
 */
export function classes<Name extends ImageClass>(...names: Name[]): Name[] {
  const only = process.env.COFFERDAM_TEST_IMAGES;
  const chosen = names.filter((name) => !only || name === only);
  return chosen.length > 0 ? chosen : names;
}

/** The images of such classes. */
export function imagesOf(...names: ImageClass[]): string[] {
  return classes(...names).map((name) => IMAGES[name]);
}

function root(name: string): string {
  return path.join(process.env.COFFERDAM_TEST_ROOTS ?? '/var/tmp/cofferdam-roots', name);
}

/** Suites of what only Docker has: on another backend their names say that they are not run. */
export const describeOnDocker: typeof describe | typeof describe.skip =
  process.env.COFFERDAM_NO_ENGINE || isNamespaces ? describe.skip : describe;

/** Suites of what only the namespaces backend has. */
export const describeOnNamespaces = isNamespaces ? describe : describe.skip;

/** Tests of what only Docker has. */
export const testOnDocker: typeof test | typeof test.skip = isNamespaces ? test.skip : test;

/** Suites against a real engine. Where none can be had, `scripts/test.mjs` says so loudly, and fails in CI. */
export const describeWithEngine = process.env.COFFERDAM_NO_ENGINE && !isNamespaces ? describe.skip : describe;

/** In CI nothing is left out: what is missing on the machine is a failure there. */
export const isCi = !['', '0', 'false'].includes(process.env.CI ?? '');

/**
 * `suite` where the machine has what it needs. Where it has not, the suite is skipped by name, and in CI it fails.
 *
 * @param missing what the machine lacks, as a clause; `undefined` when it lacks nothing
 */
export function unlessMissing(missing: string | undefined, suite: typeof describe): typeof describe;
export function unlessMissing(missing: string | undefined, suite: typeof test): typeof test;
export function unlessMissing(missing: string | undefined, suite: typeof describe | typeof test) {
  if (missing === undefined || suite === describe.skip || suite === test.skip) return suite;
  if (!isCi) {
    console.warn(`SKIPPED: ${missing}`);
    return suite.skip;
  }
  const fail = (name: string) =>
    test(name, () => {
      throw new Error(`this suite could not run: ${missing}`);
    });
  return fail as typeof describe & typeof test;
}

const managers: SandboxManager[] = [];

/** A manager that is closed after the suite, with everything it made. */
export function testManager(options: SandboxManagerOptions = {}): SandboxManager {
  const manager = new SandboxManager({ orphanTimeoutMs: 30_000, ...options });
  managers.push(manager);
  return manager;
}

/** A name that no other test has. */
export function unique(prefix = 'wf'): string {
  return `${prefix}_${Date.now()}_${Math.random().toString(36).slice(2)}`;
}

/** Looks again until it is so; jest's own timeout is the guard. */
export async function until<T>(look: () => Promise<T> | T): Promise<NonNullable<Exclude<T, false>>> {
  for (;;) {
    const found = await look();
    if (found) return found as NonNullable<Exclude<T, false>>;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Everything that happens from now on, as it comes. */
export function record(manager: SandboxManager): SandboxEvent[] {
  const seen: SandboxEvent[] = [];
  const events = manager.events();
  (async () => {
    for await (const event of events) seen.push(event);
  })();
  return seen;
}

/** A program of its own, which has `SandboxManager` and prints lines. */
export function program(body: string, env: NodeJS.ProcessEnv = {}) {
  const dist = JSON.stringify(path.resolve(__dirname, '../dist/index.js'));
  const source = `const { SandboxManager } = require(${dist});\n(async () => {\n${body}\n})();`;
  const child = spawn(process.execPath, ['-e', source], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  let output = '';
  child.stdout.on('data', (data) => {
    output += data;
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, output }));
  return {
    child,
    ended,
    /** The first whole line that it prints. */
    line: () => until(() => (output.includes('\n') ? output.slice(0, output.indexOf('\n')) : false)),
  };
}

/** How many processes in the sandbox have this command line, on any image with a shell. */
export async function countProcesses(sandbox: Sandbox, line: string): Promise<number> {
  // The brackets keep the counting shell from counting itself.
  const pattern = `[${line[0]}]${line.slice(1)}`;
  const script = `for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep -c '${pattern}'`;
  return Number((await sandbox.exec(script)).stdout);
}

afterAll(async () => {
  await Promise.all(managers.splice(0).map((manager) => manager.close()));
});
