/**
 * For your own tests: a manager that needs no engine, and a recorder that makes its script from a real one.
 *
 * The real classes run, with all their checks and errors. Only the addon below them is fake, and is never loaded.
 *
 * @example
 * ```ts
 * import { createFakeManager } from 'cofferdam/testing';
 *
 * const manager = createFakeManager({ exec: [{ command: 'npm test', stdout: '3 passed\n' }] });
 * await yourAgent(manager);
 * expect(manager.calls).toContainEqual(expect.objectContaining({ name: 'exec' }));
 * ```
 *
 * @module cofferdam/testing
 */
export type { FakeCall } from './calls';
export { createFakeManager, type FakeManager } from './manager';
export { type RecordedCall, type Recording, recordManager } from './recorder';
export type { FakeAnswer, FakeCommand, FakeContent, FakeExec, FakeProgram, FakeRun, FakeScript } from './script';
