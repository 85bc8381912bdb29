/**
 * One tool: what a model is told of it, what it takes and gives, and what it does. The Zod schemas are the source of the
 * JSON Schemas.
 *
 * Both stay loose: other names that the input goes by (`cmd` for `command`) are not shown to a model, but no validator of a
 * framework may drop or refuse them. For the same reason a field that has another name is never required by the schema, and
 * no field of an output is: a failure is a result, too.
 */
import { z } from 'zod';
import type { SandboxManager } from '../manager';
import type { Sessions } from './sessions';
import type { JsonSchema, ToolCallOptions, ToolContext, ToolDefinition } from './toolset';

/** What a call works with. */
export interface ToolCall {
  readonly manager: SandboxManager;
  readonly context: ToolContext;
  readonly sessions: Sessions;
  /** The most bytes of text of one stream or file. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
  readonly onOutput?: ToolCallOptions['onOutput'];
}

/** When a tool is there: in which mode, and whether it needs a store. */
export type ToolKind = 'compute' | 'code' | 'store';

export interface Tool {
  readonly definition: ToolDefinition;
  readonly kind: ToolKind;
  readonly input: z.ZodObject;
  /** With fields that a model is not told of. */
  readonly accepted: z.ZodObject;
  readonly output: z.ZodObject;
  /** Other names of the input's fields. */
  readonly aliases: Readonly<Record<string, string>>;
  run(input: never, call: ToolCall): Promise<object>;
}

interface ToolParts<I extends z.ZodRawShape, H extends z.ZodRawShape> {
  name: string;
  kind?: ToolKind;
  description: string;
  input: I;
  /** More fields, that a model is not told of. */
  hidden?: H;
  aliases?: Record<string, string>;
  output: z.ZodRawShape;
  run(input: z.output<z.ZodObject<I & H>>, call: ToolCall): Promise<object>;
}

/** Fields of every tool that works in a session. */
export const inSession = {
  sandbox_id: z.string().optional().describe('Only needed to choose between several sandboxes; from sandbox_open'),
};

export const sessionAliases = { session_id: 'sandbox_id' };

/** Fields that any result may have. */
const ofAnyResult = {
  ok: z.boolean().optional(),
  error: z.string().optional().describe('What went wrong, when the call could not be carried out'),
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

/** Without what says nothing, for the model's sake: `$schema`, and keywords that allow everything. */
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
