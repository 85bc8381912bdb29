/** What all suites share: whether there is an engine, and managers that clean up after themselves. */
import { type Sandbox, SandboxManager, type SandboxManagerOptions } from 'cofferdam';

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
