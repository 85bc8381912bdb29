/** What all suites share: whether there is an engine, and managers that clean up after themselves. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { type Sandbox, type SandboxEvent, SandboxManager, type SandboxManagerOptions } from 'cofferdam';
import Docker from 'dockerode';

/** The images of `scripts/fixtures.mjs`, one per class. */
export const IMAGES = { debian: 'ubuntu:22.04', alpine: 'alpine:3.19', empty: 'cofferdam/empty:latest' } as const;

/** Suites against a real engine. Where none can be had, `scripts/test.mjs` says so loudly, and fails in CI. */
export const describeWithEngine = process.env.COFFERDAM_NO_ENGINE ? describe.skip : describe;

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

/** All containers with this label of the caller's own, started or not. */
export async function containersLabelled(name: string, value: string): Promise<Docker.ContainerInfo[]> {
  const filters = { label: [`cofferdam.label.${name}=${value}`] };
  return new Docker().listContainers({ all: true, filters });
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
