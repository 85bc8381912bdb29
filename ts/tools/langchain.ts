/** The tools for LangChain, as structured tools of `@langchain/core`. */
import type { SandboxManager } from '../manager';
import { createToolset } from './create';
import { loadFramework } from './framework';
import { callForFields } from './result-fields';
import type { ToolContext } from './toolset';

// biome-ignore lint/suspicious/noTsIgnore: it is an error only where the package is missing, and that is fine.
/** @ts-ignore Of the program's own copy of the package. */
type ForImport = import('@langchain/core/tools', { with: { 'resolution-mode': 'import' }}).DynamicStructuredTool;

// biome-ignore lint/suspicious/noTsIgnore: as above.
/** @ts-ignore The same class to programs that are CommonJS modules, to which LangChain gives other declarations. */
type ForRequire = import('@langchain/core/tools', { with: { 'resolution-mode': 'require' }}).StructuredToolInterface;

/** A LangChain structured tool. */
export type LangChainTool = ForImport & ForRequire;

interface Fields {
  name: string;
  description: string;
  schema: object;
  verboseParsingErrors: boolean;
  func(input: unknown, runManager: unknown, config?: { signal?: AbortSignal }): Promise<unknown>;
}

interface LangChain {
  DynamicStructuredTool: new (fields: Fields) => LangChainTool;
}

/**
 * Tools for a LangChain agent or model to work in a sandbox.
 *
 * @example
 * ```ts
 * const tools = langchainTools(manager, { image: 'python' }); // for createAgent({ model, tools })
 * await tools.find(({ name }) => name === 'sandbox_exec')?.invoke({ command: 'python --version' });
 * ```
 */
export function langchainTools(manager: SandboxManager, context: ToolContext = {}): LangChainTool[] {
  const { DynamicStructuredTool } = loadFramework<LangChain>(
    '@langchain/core',
    '@langchain/core/tools',
    langchainTools.name,
  );
  const toolset = createToolset(manager, context);
  return toolset.tools.map(
    ({ name, description, inputSchema }) =>
      new DynamicStructuredTool({
        name,
        description,
        schema: inputSchema,
        // Tells the model what was wrong, so that it can correct it.
        verboseParsingErrors: true,
        func: (input, _runManager, config) => callForFields(toolset, name, input, { signal: config?.signal }),
      }),
  );
}
