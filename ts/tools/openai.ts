/**
 * The tools for the `openai` package, for chat completions, responses and compatible APIs.
 *
 * Imports nothing from the package: its types are matched by shape.
 */
import type { SandboxManager } from '../manager';
import { createToolset } from './create';
import { callWithJson } from './json-call';
import { type ObjectSchema, toObjectSchema } from './object-schema';
import type { ToolCallOptions, ToolContext, Toolset } from './toolset';

/** For `tools` of `chat.completions.create()`. */
export interface OpenAIChatTool {
  type: 'function';
  function: { name: string; description: string; parameters: ObjectSchema };
}

/** For `tools` of `responses.create()`. */
export interface OpenAIResponsesTool {
  type: 'function';
  name: string;
  description: string;
  parameters: ObjectSchema;
  /** Strict schemas do not allow optional fields. */
  strict: false;
}

/** An entry of an assistant message's `tool_calls`. */
export type OpenAIChatToolCall =
  | { type: 'function'; id: string; function: { name: string; arguments: string } }
  | { type: 'custom'; id: string; custom: { name: string; input: string } };

/** The message that answers it. */
export interface OpenAIChatToolMessage {
  role: 'tool';
  tool_call_id: string;
  content: string;
}

/** An item of a response's `output`. */
export interface OpenAIFunctionCall {
  type: 'function_call';
  call_id: string;
  name: string;
  arguments: string;
}

/** The item that answers it. */
export interface OpenAIFunctionCallOutput {
  type: 'function_call_output';
  call_id: string;
  output: string;
}

/** The result of {@link openaiTools}. */
export interface OpenAITools {
  /** For `chat.completions.create({ tools })`. */
  readonly tools: OpenAIChatTool[];
  /** For `responses.create({ tools })`. */
  readonly responsesTools: OpenAIResponsesTool[];
  /** Runs a tool call, and returns the answer in the shape of the API that the call came from. */
  call(toolCall: OpenAIChatToolCall, options?: ToolCallOptions): Promise<OpenAIChatToolMessage>;
  call(toolCall: OpenAIFunctionCall, options?: ToolCallOptions): Promise<OpenAIFunctionCallOutput>;
  /** The toolset behind the tools. Close it when the work is over. */
  readonly toolset: Toolset;
}

/**
 * Tools for an OpenAI model to work in a sandbox.
 *
 * @example
 * ```ts
 * const { tools, call } = openaiTools(manager, { image: 'python' });
 * const { choices } = await openai.chat.completions.create({ model, messages: chat, tools });
 * for (const { message } of choices) {
 *   const answers = await Promise.all((message.tool_calls ?? []).map((toolCall) => call(toolCall)));
 *   chat.push(message, ...answers);
 * }
 * ```
 */
export function openaiTools(manager: SandboxManager, context: ToolContext = {}): OpenAITools {
  const toolset = createToolset(manager, context);
  const functions = toolset.tools.map(({ name, description, inputSchema }) => ({
    name,
    description,
    parameters: toObjectSchema(inputSchema),
  }));

  async function call(toolCall: OpenAIChatToolCall | OpenAIFunctionCall, options?: ToolCallOptions) {
    if (toolCall.type === 'function_call') {
      const output = await callWithJson(toolset, toolCall.name, toolCall.arguments, options);
      return { type: 'function_call_output', call_id: toolCall.call_id, output };
    }
    // A custom tool is not one of ours. The toolset answers that it does not know the name.
    const { name, input } =
      toolCall.type === 'custom'
        ? { name: toolCall.custom.name, input: '' }
        : { name: toolCall.function.name, input: toolCall.function.arguments };
    return { role: 'tool', tool_call_id: toolCall.id, content: await callWithJson(toolset, name, input, options) };
  }

  return {
    tools: functions.map((definition) => ({ type: 'function', function: definition })),
    responsesTools: functions.map((definition) => ({ type: 'function', ...definition, strict: false })),
    call: call as OpenAITools['call'],
    toolset,
  };
}
