/**
 * A call as models without a framework make it: the input comes as JSON text, the result goes back as JSON text.
 *
 * Invariant: as that of `Toolset.call()`: text that is no JSON is answered, for the model to read.
 */
import type { JsonSchema, ToolCallOptions, ToolFailure, ToolResult, Toolset } from './toolset';

/** The result of a call, as text for a model. */
export async function callWithJson(
  toolset: Toolset,
  name: string,
  input: string,
  options?: ToolCallOptions,
): Promise<string> {
  const parsed = parse(input);
  return JSON.stringify('failure' in parsed ? parsed.failure : await toolset.call(name, parsed.value, options));
}

function parse(input: string): { value: unknown } | { failure: ToolFailure } {
  try {
    // Models write nothing at all for a tool that needs no input.
    return { value: input.trim() === '' ? {} : JSON.parse(input) };
  } catch (error) {
    const failure: ToolFailure = {
      ok: false,
      code: 'INVALID_ARGUMENT',
      error: `the arguments are not valid JSON: ${(error as Error).message}`,
      hint: 'Write the arguments again, as one JSON object.',
    };
    return { failure };
  }
}

/** The result of a call, as fields: what frameworks want of an object. */
export type ResultFields = { [field: string]: unknown };

export async function callForFields(
  toolset: Toolset,
  name: string,
  input: unknown,
  options?: ToolCallOptions,
): Promise<ResultFields> {
  const result: ToolResult = await toolset.call(name, input, options);
  return { ...result };
}

/** A schema of an object, as SDKs have it in their types. Ours all are. */
export interface ObjectSchema {
  [keyword: string]: unknown;
  type: 'object';
  properties: { [name: string]: Record<string, unknown> };
  required: string[];
}

export function toObjectSchema(schema: JsonSchema): ObjectSchema {
  const { properties = {}, required = [] } = schema;
  return {
    ...schema,
    type: 'object',
    properties: properties as ObjectSchema['properties'],
    required: required as string[],
  };
}
