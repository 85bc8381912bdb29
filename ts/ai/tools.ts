/**
 * The tools for AI SDK 5, 6 and 7.
 *
 * Invariant: nothing of the SDK is imported at run time. Its schemas are recognised by symbols that are the same in all
 * copies, so that these tools work with whichever copy the program has.
 */
import type { SandboxManager } from '../manager';
import type { NeedsApproval } from '../tools/approval';
import { createToolset } from '../tools/create';
import type { JsonSchema, ToolContext } from '../tools/toolset';
import { Approval, type CallOptions } from './approval';
import { liveResults } from './live-output';

// biome-ignore lint/suspicious/noTsIgnore: it is an error only where the package is missing, and that is fine.
/** @ts-ignore Tools by name, as the program's own copy of the SDK has them. */
export type ToolSet = import('ai', { with: { 'resolution-mode': 'import' }}).ToolSet;

/** Options of {@link sandboxTools}. */
export interface SandboxToolsOptions extends ToolContext {
  /**
   * Which calls a person has to approve first. Needs AI SDK 6 or later.
   *
   * @default false
   */
  needsApproval?: NeedsApproval;
}

/** Tools that run commands, and so have preliminary results. */
const STREAMING_TOOLS: ReadonlySet<string> = new Set(['sandbox_exec', 'sandbox_exec_wait', 'sandbox_run']);

/**
 * Tools for a model to work in a sandbox, for `generateText`, `streamText` and agents. While a command runs, its output
 * comes as preliminary results. An aborted call kills the command with all processes it started.
 *
 * @example
 * ```ts
 * const tools = sandboxTools(manager, { image: 'python', scope: { workflow: runId } });
 * const agent = new ToolLoopAgent({ model, tools });
 * await agent.generate({ prompt: 'Plot the sales in data.csv.' });
 * ```
 */
export function sandboxTools(manager: SandboxManager, options: SandboxToolsOptions = {}): ToolSet {
  const { needsApproval, ...context } = options;
  const toolset = createToolset(manager, context);
  const names = toolset.tools.map(({ name }) => name);
  const approval = needsApproval === undefined ? undefined : new Approval(needsApproval, names);

  const tools = toolset.tools.map(({ name, description, inputSchema }) => {
    const call = async (input: unknown, sdk: CallOptions, more: Parameters<typeof toolset.call>[2]) =>
      (await approval?.refusal(name, input, sdk)) ?? toolset.call(name, input, more);
    const execute = STREAMING_TOOLS.has(name)
      ? (input: unknown, sdk: CallOptions) =>
          liveResults((signal, onOutput) => call(input, sdk, { signal, onOutput }), sdk.abortSignal)
      : (input: unknown, sdk: CallOptions) => call(input, sdk, { signal: sdk.abortSignal });
    const tool = { description, inputSchema: toSchema(inputSchema), execute };
    return [name, approval ? { ...tool, needsApproval: (input: unknown) => approval.ask(name, input) } : tool];
  });
  return Object.fromEntries(tools);
}

/** Like the SDK's own `jsonSchema()`. Nothing is validated here: the call itself answers wrong input. */
function toSchema(jsonSchema: JsonSchema) {
  return {
    [Symbol.for('vercel.ai.schema')]: true,
    [Symbol.for('vercel.ai.validator')]: true,
    jsonSchema,
    validate: undefined,
  };
}
