/**
 * cofferdam for Vercel's AI SDK: tools for models, and sandboxes for the SDK's own sandbox interfaces.
 *
 * Imports nothing from the SDK at run time, so that it works with the program's own copy of AI SDK 5, 6 or 7.
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
