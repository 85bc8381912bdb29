/**
 * The tools for AI SDK 5, 6 and 7.
 *
 * Invariant: nothing of the SDK is imported when this runs. Its schemas are known by symbols that are the same in all
 * copies of it, so that these tools fit whichever the program has.
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
  /** Which calls a person has to approve first; AI SDK 6 and later. None unless told. */
  needsApproval?: NeedsApproval;
}

/** Whose calls run commands, and so have something to show before they are done. */
const ALOUD: ReadonlySet<string> = new Set(['sandbox_exec', 'sandbox_exec_wait', 'sandbox_run']);

/**
 * Tools with which a model works in a sandbox, for `generateText`, `streamText` and agents. While a command runs, what it
 * prints comes as preliminary results; an aborted call ends the command with all that it started.
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
    const execute = ALOUD.has(name)
      ? (input: unknown, sdk: CallOptions) =>
          liveResults((signal, onOutput) => call(input, sdk, { signal, onOutput }), sdk.abortSignal)
      : (input: unknown, sdk: CallOptions) => call(input, sdk, { signal: sdk.abortSignal });
    const tool = { description, inputSchema: toSchema(inputSchema), execute };
    return [name, approval ? { ...tool, needsApproval: (input: unknown) => approval.ask(name, input) } : tool];
  });
  return Object.fromEntries(tools);
}

/** As the SDK's own `jsonSchema()` makes it. What a model wrote wrong is answered by the call, so nothing is checked here. */
function toSchema(jsonSchema: JsonSchema) {
  return {
    [Symbol.for('vercel.ai.schema')]: true,
    [Symbol.for('vercel.ai.validator')]: true,
    jsonSchema,
    validate: undefined,
  };
}
