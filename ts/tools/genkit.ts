/**
 * The tools for Genkit, defined on an instance of the program's own.
 *
 * Nothing of the package is imported: the instance brings all that is needed.
 */
import { SandboxError } from '../errors';
import type { SandboxManager } from '../manager';
import { createToolset } from './create';
import { callForFields, type ResultFields } from './result-fields';
import type { JsonSchema, ToolContext } from './toolset';

const TWICE =
  'this instance of Genkit has sandbox tools by name already, and these would take their place; use those, or give genkitTools() dynamic: true';

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
  /** What `genkit()` gave. */
  ai: { defineTool(config: Config, handler: Handler): unknown; dynamicTool(config: Config, handler: Handler): unknown };
  /**
   * Leaves the instance's register of names alone, so that one instance can have such tools for many sandboxes, as a server
   * does for its users. They are then given to `generate()` themselves, not by name.
   */
  dynamic?: boolean;
  /**
   * Ends every call of these tools. Genkit does not tell tools that a generation was aborted (seen with 1.42): who passes
   * an `abortSignal` to `generate()` gives it here, too.
   */
  signal?: AbortSignal;
}

/** Which instances have our tools by name: a second set would take the place of the first, and lead to its sandbox. */
const defined = new WeakSet<object>();

/**
 * Tools with which a Genkit model, prompt or flow works in a sandbox, defined on the instance by name.
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
    if (defined.has(ai)) throw new SandboxError('INVALID_ARGUMENT', TWICE);
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
