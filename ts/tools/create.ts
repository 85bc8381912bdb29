/** Makes a toolset: chooses its tools, and answers calls. */
import { SandboxError } from '../errors';
import * as check from '../internal/check';
import { toNativeScope } from '../internal/open';
import { observedTool } from '../internal/telemetry';
import type { SandboxManager } from '../manager';
import { tools } from './catalogue';
import type { Tool } from './definition';
import { LEAST_RESULT_BYTES, MAX_RESULT_BYTES } from './excerpt';
import { HintedError, toFailure } from './failure';
import { readInput } from './input';
import { Sessions } from './sessions';
import type { ToolCallOptions, ToolContext, ToolResult, Toolset } from './toolset';

/**
 * The tools of one agent, or of all agents of a workflow. The first call that needs a sandbox opens it.
 *
 * @example
 * ```ts
 * await using tools = createToolset(manager, { scope: { workflow: 'wf_abc123' }, image: 'python' });
 * const result = await tools.call('sandbox_exec', { command: 'python --version' });
 * if (!isToolFailure(result)) console.log(result.stdout);
 * ```
 */
export function createToolset(manager: SandboxManager, context: ToolContext = {}): Toolset {
  checkContext(context);
  const { maxResultBytes: maxBytes = MAX_RESULT_BYTES } = context;
  const chosen = choose(manager, context);
  const byName = new Map(chosen.map((tool) => [tool.definition.name, tool]));
  const sessions = new Sessions(manager, context);
  let isClosed = false;

  function call(name: string, input: unknown, options: ToolCallOptions = {}): Promise<ToolResult> {
    // A name that a model made up does not become a span name.
    return observedTool(manager, byName.has(name) ? name : 'unknown', () => answer(name, input, options));
  }

  async function answer(name: string, input: unknown, options: ToolCallOptions): Promise<ToolResult> {
    const { signal, onOutput } = options;
    signal?.throwIfAborted();
    try {
      if (isClosed)
        throw new HintedError('SANDBOX_CLOSED', 'these tools are closed', 'The work is over. Stop calling tools.');
      const tool = byName.get(name) ?? unknown(name, chosen);
      const read = readInput(tool, input) as never;
      return (await tool.run(read, { manager, context, sessions, maxBytes, signal, onOutput })) as ToolResult;
    } catch (error) {
      // Whatever failed because of the abort.
      signal?.throwIfAborted();
      return toFailure(error);
    }
  }

  async function close(): Promise<void> {
    isClosed = true;
    await sessions.close();
  }

  return {
    tools: chosen.map(({ definition }) => definition),
    call,
    sandbox: () => sessions.reachOpen(undefined),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Throws at once: a model cannot fix a mistake of the host. What `open()` checks is left to it. */
function checkContext(context: ToolContext): void {
  check.object('context', context);
  if (context.scope !== undefined) toNativeScope(context.scope);
  check.optionalText('session', context.session);
  for (const name of ['maxFileBytes', 'maxFiles', 'maxSessions'] as const) check.optionalCount(name, context[name]);
  for (const name of ['commandTimeoutMs', 'idleTimeoutMs'] as const) check.timeout(name, context[name]);
  const least = LEAST_RESULT_BYTES;
  if (context.maxResultBytes !== undefined && check.count('maxResultBytes', context.maxResultBytes) < least) {
    throw check.invalid('maxResultBytes', `at least ${least}`, context.maxResultBytes);
  }
}

function unknown(name: unknown, chosen: readonly Tool[]): never {
  const shown = typeof name === 'string' ? JSON.stringify(name.slice(0, 60)) : 'with that name';
  throw new HintedError('INVALID_ARGUMENT', `there is no tool ${shown}`, `The tools are: ${names(chosen)}.`);
}

function names(chosen: readonly Tool[]): string {
  return chosen.map(({ definition }) => definition.name).join(', ');
}

/** The tools of the mode, with the store tools if there is a store; only those in `include` if it is given. */
function choose(manager: SandboxManager, { mode = 'code', include }: ToolContext): Tool[] {
  if (mode !== 'code' && mode !== 'compute') throw check.invalid('mode', '"code" or "compute"', mode);
  const there = tools.filter(({ kind }) => kind === mode || (mode === 'code' && kind === 'store' && manager.hasStore));
  if (include === undefined) return there;
  if (!Array.isArray(include)) throw check.invalid('include', 'an array of tool names', include);
  for (const name of include) {
    if (there.some(({ definition }) => definition.name === name)) continue;
    const needsStore = tools.some(({ definition, kind }) => definition.name === name && kind === 'store');
    const why = needsStore && mode === 'code' ? ', because the manager has no store' : '';
    const message = `include names ${JSON.stringify(name)}, which is not a tool of mode "${mode}"${why}; the tools are ${names(there)}`;
    throw new SandboxError('INVALID_ARGUMENT', message, { include: name });
  }
  return there.filter(({ definition }) => include.includes(definition.name));
}
