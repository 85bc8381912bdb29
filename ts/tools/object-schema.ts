/** A tool's input schema as SDKs type it: the schema of an object. All of ours are. */
import type { JsonSchema } from './toolset';

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
