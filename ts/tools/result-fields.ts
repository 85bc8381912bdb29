/** The result of a call as fields, whether it was carried out or not: what frameworks want of an object. */
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
