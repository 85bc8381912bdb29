/**
 * The tools for `@openai/agents`.
 *
 * Imports nothing from the package: its function tools are plain objects, matched by shape.
 */
import type { SandboxManager } from '../manager';
import { approvalRule, type NeedsApproval } from './approval';
import { createToolset } from './create';
import { callWithJson } from './json-call';
import { type ObjectSchema, toObjectSchema } from './object-schema';
import type { ToolContext } from './toolset';

/** A `FunctionTool` of `@openai/agents`. */
export interface OpenAIAgentTool {
  type: 'function';
  name: string;
  description: string;
  parameters: ObjectSchema & { additionalProperties: true };
  /** Strict schemas do not allow optional fields. */
  strict: false;
  invoke(runContext: unknown, input: string, details?: { signal?: AbortSignal }): Promise<string>;
  needsApproval(runContext: unknown, input: unknown, callId?: string): Promise<boolean>;
  isEnabled(): Promise<boolean>;
}

/** Options of {@link openaiAgentTools}. */
export interface OpenAIAgentToolsOptions extends ToolContext {
  /**
   * Which calls a person has to approve first. They come up as interruptions of the run.
   *
   * @default false
   */
  needsApproval?: NeedsApproval;
}

/**
 * Tools for an agent of `@openai/agents` to work in a sandbox.
 *
 * @example
 * ```ts
 * import { Agent, run } from '@openai/agents';
 *
 * const agent = new Agent({ name: 'Analyst', tools: openaiAgentTools(manager, { image: 'python' }) });
 * await run(agent, 'Plot the sales in data.csv.');
 * ```
 */
export function openaiAgentTools(manager: SandboxManager, options: OpenAIAgentToolsOptions = {}): OpenAIAgentTool[] {
  const { needsApproval = false, ...context } = options;
  const toolset = createToolset(manager, context);
  const isNeeded = approvalRule(
    needsApproval,
    toolset.tools.map(({ name }) => name),
  );
  return toolset.tools.map(({ name, description, inputSchema }) => ({
    type: 'function',
    name,
    description,
    parameters: { ...toObjectSchema(inputSchema), additionalProperties: true },
    strict: false,
    invoke: (_runContext, input, details) => callWithJson(toolset, name, input, { signal: details?.signal }),
    needsApproval: async (_runContext, input) => isNeeded(name, input),
    isEnabled: async () => true,
  }));
}
