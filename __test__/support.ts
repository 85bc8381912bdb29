/** What all suites share: whether there is an engine, and managers that clean up after themselves. */
import { SandboxManager, type SandboxManagerOptions } from 'cofferdam';

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

afterAll(async () => {
  await Promise.all(managers.splice(0).map((manager) => manager.close()));
});
