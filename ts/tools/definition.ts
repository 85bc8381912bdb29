/**
 * One tool: its description for models, its input and output, and what it does. The JSON Schemas are generated from the Zod
 * schemas.
 *
 * Both schemas are loose. Aliases of input fields (`cmd` for `command`) are not shown to models, but a framework's validator
 * must not drop or reject them. So a field with an alias is never required by the schema. No output field is required either:
 * a failure is a result, too.
 */
import { z } from 'zod';
import type { SandboxManager } from '../manager';
import type { Sessions } from './sessions';
import type { JsonSchema, ToolCallOptions, ToolContext, ToolDefinition } from './toolset';

/** The context of a call. */
export interface ToolCall {
  readonly manager: SandboxManager;
  readonly context: ToolContext;
  readonly sessions: Sessions;
  /** The maximum size of one stream or file in a result. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
  readonly onOutput?: ToolCallOptions['onOutput'];
}

/** When a tool is available: in which mode, and whether it needs a store. */
export type ToolKind = 'compute' | 'code' | 'store';

export interface Tool {
  readonly definition: ToolDefinition;
  readonly kind: ToolKind;
  readonly input: z.ZodObject;
  /** The input schema with hidden fields. */
  readonly accepted: z.ZodObject;
  readonly output: z.ZodObject;
  /** Aliases of input fields. */
  readonly aliases: Readonly<Record<string, string>>;
  run(input: never, call: ToolCall): Promise<object>;
}

interface ToolParts<I extends z.ZodRawShape, H extends z.ZodRawShape> {
  name: string;
  kind?: ToolKind;
  description: string;
  input: I;
  /** Further input fields that models do not see. */
  hidden?: H;
  aliases?: Record<string, string>;
  output: z.ZodRawShape;
  run(input: z.output<z.ZodObject<I & H>>, call: ToolCall): Promise<object>;
}

/** Input fields of every tool that works in a session. */
export const inSession = {
  sandbox_id: z
    .string()
    .optional()
    .describe('Only needed to choose between several sandboxes. Returned by sandbox_open'),
};

export const sessionAliases = { session_id: 'sandbox_id' };

/** Fields that any result can have. */
const ofAnyResult = {
  ok: z.boolean().optional(),
  error: z.string().optional().describe('Why the call failed'),
  code: z.string().optional(),
  hint: z.string().optional().describe('What to try next'),
  note: z.string().optional(),
};

export function defineTool<I extends z.ZodRawShape, H extends z.ZodRawShape = Record<never, never>>(
  parts: ToolParts<I, H>,
): Tool {
  const input = z.looseObject(parts.input);
  const output = z.looseObject({ ...ofAnyResult, ...parts.output }).partial();
  return {
    definition: {
      name: parts.name,
      description: parts.description,
      inputSchema: toJsonSchema(input, 'input'),
      outputSchema: toJsonSchema(output, 'output'),
    },
    kind: parts.kind ?? 'code',
    input,
    accepted: z.looseObject({ ...parts.input, ...parts.hidden }),
    output,
    aliases: parts.aliases ?? {},
    run: parts.run as Tool['run'],
  };
}

/** Without what tells a model nothing: `$schema`, and keywords that allow everything. */
function toJsonSchema(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    override: ({ jsonSchema }) => {
      const { additionalProperties, propertyNames } = jsonSchema;
      if (typeof additionalProperties === 'object' && Object.keys(additionalProperties).length === 0) {
        delete jsonSchema.additionalProperties;
      }
      if (propertyNames !== undefined) delete jsonSchema.propertyNames;
    },
  });
  return rest;
}
