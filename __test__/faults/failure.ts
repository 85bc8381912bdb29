/** What the suites of faults share: the error that a call ends with, and a sandbox that must outlive every fault. */
import { type OpenOptions, type Sandbox, SandboxError, type SandboxManager } from 'cofferdam';

/** The `SandboxError` that a call rejects with; any other outcome fails the test. */
export async function failure(call: Promise<unknown>): Promise<SandboxError> {
  const outcome = await call.then(
    (value) => `resolved with ${JSON.stringify(value)}`,
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(SandboxError);
  const error = outcome as SandboxError;
  expect(error.message).not.toBe('');
  return error;
}

/** What a caller gives who has no types to stop them. */
export function untyped<T>(value: unknown): T {
  return value as T;
}

/**
 * Runs one fault after another against one sandbox. After each test the sandbox must be the same one as before, and
 * answer; where a fault took it down, that test fails and the next one has a new sandbox.
 */
export function sturdySandbox(manager: SandboxManager, options: OpenOptions): () => Sandbox {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await manager.open(options);
  });
  afterEach(async () => {
    const { stdout } = await sandbox.exec('echo alive');
    expect(stdout).toBe('alive\n');
  });
  return () => sandbox;
}
