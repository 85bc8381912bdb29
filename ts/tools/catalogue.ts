/** All tools, in the order in which models see them. */
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
 * All tools, as plain data.
 *
 * @example
 * ```ts
 * const parameters = toolDefinitions.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
 * ```
 */
export const toolDefinitions: readonly ToolDefinition[] = tools.map(({ definition }) => definition);

/** The Zod schemas of each tool's input and output. The JSON Schemas are generated from them. */
export const toolSchemas: Readonly<Record<string, { input: z.ZodObject; output: z.ZodObject }>> = Object.fromEntries(
  tools.map(({ definition, input, output }) => [definition.name, { input, output }]),
);
