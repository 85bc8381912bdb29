/** All tools there are, in the order in which a model is told of them. */
import type { z } from 'zod';
import type { Tool } from './definition';
import { execTool } from './exec';
import { execReadTool, execWaitTool } from './exec-later';
import { fsEditTool } from './fs-edit';
import { fsDeleteTool, fsListTool } from './fs-list';
import { fsReadTool } from './fs-read';
import { fsSearchTool } from './fs-search';
import { fsWriteTool } from './fs-write';
import { closeTool, openTool } from './open';
import { runTool } from './run';
import { publishTool, stageTool } from './store';
import type { ToolDefinition } from './toolset';

export const tools: readonly Tool[] = [
  runTool,
  openTool,
  execTool,
  execReadTool,
  execWaitTool,
  fsWriteTool,
  fsReadTool,
  fsListTool,
  fsEditTool,
  fsSearchTool,
  fsDeleteTool,
  stageTool,
  publishTool,
  closeTool,
];

/**
 * Every tool there is, as plain data.
 *
 * @example
 * ```ts
 * const parameters = toolDefinitions.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
 * ```
 */
export const toolDefinitions: readonly ToolDefinition[] = tools.map(({ definition }) => definition);

/** The same as Zod: what each tool takes and gives. The JSON Schemas are made of these. */
export const toolSchemas: Readonly<Record<string, { input: z.ZodObject; output: z.ZodObject }>> = Object.fromEntries(
  tools.map(({ definition, input, output }) => [definition.name, { input, output }]),
);
