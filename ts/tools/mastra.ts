/** The tools for Mastra, as `createTool` of `@mastra/core` makes them. */
import type { SandboxManager } from '../manager';
import { createToolset } from './create';
import { loadFramework } from './framework';
import { callForFields, type ResultFields } from './result-fields';
import type { ToolContext } from './toolset';

// biome-ignore lint/suspicious/noTsIgnore: it is an error only where the package is missing, and that is fine.
/** @ts-ignore A tool, as the program's own copy of Mastra has it. */
export type MastraTool = import('@mastra/core/tools', { with: { 'resolution-mode': 'import' }}).Tool<
  ResultFields,
  ResultFields
>;

interface Parts {
  id: string;
  description: string;
  inputSchema: object;
  execute(input: unknown, context?: { abortSignal?: AbortSignal }): Promise<ResultFields>;
}

interface Mastra {
  createTool(parts: Parts): MastraTool;
}

/**
 * Tools for a Mastra agent to work in a sandbox, by name.
 *
 * @example
 * ```ts
 * import { Agent } from '@mastra/core/agent';
 *
 * const agent = new Agent({ id: 'analyst', name: 'Analyst', instructions, model, tools: mastraTools(manager, { image: 'python' }) });
 * ```
 */
export function mastraTools(manager: SandboxManager, context: ToolContext = {}): Record<string, MastraTool> {
  const { createTool } = loadFramework<Mastra>('@mastra/core', '@mastra/core/tools', mastraTools.name);
  const toolset = createToolset(manager, context);
  return Object.fromEntries(
    toolset.tools.map(({ name, description, inputSchema }) => [
      name,
      createTool({
        id: name,
        description,
        inputSchema,
        execute: (input, more) => callForFields(toolset, name, input, { signal: more?.abortSignal }),
      }),
    ]),
  );
}
