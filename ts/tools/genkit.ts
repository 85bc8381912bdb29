/**
 * The tools for Genkit, defined on the program's own instance.
 *
 * Imports nothing from the package: the instance has everything that is needed.
 */
import { SandboxError } from '../errors';
import type { SandboxManager } from '../manager';
import { createToolset } from './create';
import { callForFields, type ResultFields } from './result-fields';
import type { JsonSchema, ToolContext } from './toolset';

const ALREADY_DEFINED =
  'this Genkit instance already has sandbox tools, which these would replace; use those, or call genkitTools() with dynamic: true';

// biome-ignore lint/suspicious/noTsIgnore: it is an error only where the package is missing, and that is fine.
/** @ts-ignore A tool, as the program's own copy of Genkit has it. */
export type GenkitTool = import('genkit', { with: { 'resolution-mode': 'import' }}).ToolAction;

interface Config {
  name: string;
  description: string;
  inputJsonSchema: JsonSchema;
}

type Handler = (input: unknown, options: { abortSignal?: AbortSignal }) => Promise<ResultFields>;

/** Options of {@link genkitTools}. */
export interface GenkitToolsOptions extends ToolContext {
  /** The instance, from `genkit()`. */
  ai: { defineTool(config: Config, handler: Handler): unknown; dynamicTool(config: Config, handler: Handler): unknown };
  /**
   * Does not register the tools by name, so that one instance can have tools for many sandboxes, such as a server for its
   * users. Pass the tools themselves to `generate()`, not their names.
   *
   * @default false
   */
  dynamic?: boolean;
  /**
   * Aborts every call of these tools. Genkit does not tell tools that a generation was aborted (seen with 1.42): pass the
   * `abortSignal` of `generate()` here, too.
   */
  signal?: AbortSignal;
}

/** Instances with registered tools. A second set would replace the first, and lead to another sandbox. */
const defined = new WeakSet<object>();

/**
 * Tools for a Genkit model, prompt or flow to work in a sandbox, registered on the instance by name.
 *
 * @example
 * ```ts
 * const ai = genkit({});
 * await ai.generate({ model, prompt, tools: genkitTools(manager, { ai, image: 'python' }) });
 * ```
 */
export function genkitTools(manager: SandboxManager, options: GenkitToolsOptions): GenkitTool[] {
  const { ai, dynamic = false, signal, ...context } = options;
  const toolset = createToolset(manager, context);
  if (!dynamic) {
    if (defined.has(ai)) throw new SandboxError('INVALID_ARGUMENT', ALREADY_DEFINED);
    defined.add(ai);
  }
  return toolset.tools.map(({ name, description, inputSchema }) => {
    const config = { name, description, inputJsonSchema: inputSchema };
    const handler: Handler = (input, { abortSignal }) => {
      const signals = [signal, abortSignal].filter((each) => each !== undefined);
      return callForFields(toolset, name, input, { signal: AbortSignal.any(signals) });
    };
    return (dynamic ? ai.dynamicTool(config, handler) : ai.defineTool(config, handler)) as GenkitTool;
  });
}
