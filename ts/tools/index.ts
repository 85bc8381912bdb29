/**
 * Tools for agents, whatever framework they run in.
 *
 * @example
 * ```ts
 * import { createToolset } from 'cofferdam/tools';
 *
 * await using tools = createToolset(manager, { scope: { workflow: 'wf_abc123' } });
 * await tools.call('sandbox_fs_write', { path: 'main.py', content: 'print(6 * 7)' });
 * const { stdout } = await tools.call('sandbox_exec', { command: 'python3 main.py' });
 * ```
 */
export { toolDefinitions, toolSchemas } from './catalogue';
export { createToolset } from './create';
export { isToolFailure } from './failure';
export type {
  JsonSchema,
  ToolCallOptions,
  ToolContext,
  ToolDefinition,
  ToolFailure,
  ToolOutput,
  ToolResult,
  Toolset,
} from './toolset';
