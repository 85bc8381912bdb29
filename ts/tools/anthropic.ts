/**
 * The tools for `@anthropic-ai/sdk`, and for compatible message APIs.
 *
 * Imports nothing from the package: its types are matched by shape.
 */
import type { SandboxManager } from '../manager';
import { createToolset } from './create';
import { isToolFailure } from './failure';
import { type ObjectSchema, toObjectSchema } from './object-schema';
import type { ToolCallOptions, ToolContext, Toolset } from './toolset';

/** For `tools` of `messages.create()`. */
export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: ObjectSchema;
}

/** A block of an assistant message that calls a tool. */
export interface AnthropicToolUse {
  type: 'tool_use';
  id: string;
  name: string;
  input: unknown;
}

/** The block that answers it. */
export interface AnthropicToolResult {
  type: 'tool_result';
  tool_use_id: string;
  content: string;
  is_error: boolean;
}

/** The result of {@link anthropicTools}. */
export interface AnthropicTools {
  /** For `messages.create({ tools })`. */
  readonly tools: AnthropicTool[];
  /** Runs one call. */
  call(toolUse: AnthropicToolUse, options?: ToolCallOptions): Promise<AnthropicToolResult>;
  /** Runs all tool calls of a message concurrently; other blocks are ignored. */
  answer(content: readonly { type: string }[], options?: ToolCallOptions): Promise<AnthropicToolResult[]>;
  /** The toolset behind the tools. Close it when the work is over. */
  readonly toolset: Toolset;
}

/**
 * Tools for an Anthropic model to work in a sandbox.
 *
 * @example
 * ```ts
 * const { tools, answer } = anthropicTools(manager, { image: 'python' });
 * const message = await anthropic.messages.create({ model, max_tokens: 4096, messages, tools });
 * messages.push({ role: 'assistant', content: message.content });
 * if (message.stop_reason === 'tool_use') messages.push({ role: 'user', content: await answer(message.content) });
 * ```
 */
export function anthropicTools(manager: SandboxManager, context: ToolContext = {}): AnthropicTools {
  const toolset = createToolset(manager, context);
  const call: AnthropicTools['call'] = async ({ id, name, input }, options) => {
    const result = await toolset.call(name, input, options);
    return { type: 'tool_result', tool_use_id: id, content: JSON.stringify(result), is_error: isToolFailure(result) };
  };
  return {
    tools: toolset.tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      input_schema: toObjectSchema(inputSchema),
    })),
    call,
    answer: (content, options) => Promise.all(content.filter(isToolUse).map((block) => call(block, options))),
    toolset,
  };
}

function isToolUse(block: { type: string }): block is AnthropicToolUse {
  return block.type === 'tool_use';
}
