/**
 * Tools for agents, whatever framework they run in.
 *
 * @example
 * ```ts
 * import { createToolset, isToolFailure } from 'cofferdam/tools';
 *
 * await using tools = createToolset(manager, { scope: { workflow: 'wf_abc123' } });
 * await tools.call('sandbox_fs_write', { path: 'main.py', content: 'print(6 * 7)' });
 * const result = await tools.call('sandbox_exec', { command: 'python3 main.py' });
 * if (!isToolFailure(result)) console.log(result.stdout);
 * ```
 *
 * @module cofferdam/tools
 */
export {
  type AnthropicTool,
  type AnthropicToolResult,
  type AnthropicTools,
  type AnthropicToolUse,
  anthropicTools,
} from './anthropic';
export type { NeedsApproval } from './approval';
export { toolDefinitions, toolSchemas } from './catalogue';
export { createToolset } from './create';
export { isToolFailure } from './failure';
export { type GenkitTool, type GenkitToolsOptions, genkitTools } from './genkit';
export { type LangChainTool, langchainTools } from './langchain';
export { type MastraTool, mastraTools } from './mastra';
export {
  type OpenAIChatTool,
  type OpenAIChatToolCall,
  type OpenAIChatToolMessage,
  type OpenAIFunctionCall,
  type OpenAIFunctionCallOutput,
  type OpenAIResponsesTool,
  type OpenAITools,
  openaiTools,
} from './openai';
export { type OpenAIAgentTool, type OpenAIAgentToolsOptions, openaiAgentTools } from './openai-agents';
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
