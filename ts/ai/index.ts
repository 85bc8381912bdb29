/**
 * cofferdam for Vercel's AI SDK: tools for models, and sandboxes for its own sandbox interfaces.
 *
 * Imports nothing of the SDK when it runs, so that it fits the copy that the program has, of AI SDK 5, 6 or 7.
 *
 * @module cofferdam/ai
 */
export type { NeedsApproval } from '../tools/approval';
export type {
  NetworkSandboxSession,
  SandboxProcess,
  SandboxProvider,
  SandboxSession,
  WritableSandboxProcess,
} from './interface';
export { type CofferdamSandboxOptions, createCofferdamSandbox } from './provider';
export { sandboxSession } from './session';
export { type SandboxToolsOptions, sandboxTools, type ToolSet } from './tools';
