/** The result of a call as a plain object, for frameworks that need one. */
import type { ToolCallOptions, Toolset } from './toolset';

export type ResultFields = { [field: string]: unknown };

export async function callForFields(
  toolset: Toolset,
  name: string,
  input: unknown,
  options?: ToolCallOptions,
): Promise<ResultFields> {
  return { ...(await toolset.call(name, input, options)) };
}
