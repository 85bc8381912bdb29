/** From a manager and a context to a set of tools: which they are, and how a call is answered. */
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
 * The tools of one agent, or of one workflow's agents. No sandbox is made before a call needs one.
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
    // What a model wrote for a name is not shown as one.
    return observedTool(manager, byName.has(name) ? name : 'unknown', () => answer(name, input, options));
  }

  async function answer(name: string, input: unknown, options: ToolCallOptions): Promise<ToolResult> {
    const { signal, onOutput } = options;
    signal?.throwIfAborted();
    try {
      if (isClosed) throw new HintedError('SANDBOX_CLOSED', 'closed', 'The work is over: these tools are closed.');
      const tool = byName.get(name) ?? unknown(name, chosen);
      const read = readInput(tool, input) as never;
      return (await tool.run(read, { manager, context, sessions, maxBytes, signal, onOutput })) as ToolResult;
    } catch (error) {
      // Whatever it was that the abort made fail.
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

/** At once: a model can do nothing about a mistake of the host's. What `open()` checks anyway is left to it. */
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
  const shown = typeof name === 'string' ? JSON.stringify(name.slice(0, 60)) : 'of that name';
  throw new HintedError('INVALID_ARGUMENT', `there is no tool ${shown}`, `There are: ${names(chosen)}.`);
}

function names(chosen: readonly Tool[]): string {
  return chosen.map(({ definition }) => definition.name).join(', ');
}

/** The mode's tools, those of the store where there is one, and of these the ones that were asked for. */
function choose(manager: SandboxManager, { mode = 'code', include }: ToolContext): Tool[] {
  if (mode !== 'code' && mode !== 'compute') throw check.invalid('mode', '"code" or "compute"', mode);
  const there = tools.filter(({ kind }) => kind === mode || (mode === 'code' && kind === 'store' && manager.hasStore));
  if (include === undefined) return there;
  if (!Array.isArray(include)) throw check.invalid('include', 'an array of names of tools', include);
  for (const name of include) {
    if (there.some(({ definition }) => definition.name === name)) continue;
    const needsStore = tools.some(({ definition, kind }) => definition.name === name && kind === 'store');
    const why = needsStore && mode === 'code' ? ', because the manager has no store' : '';
    const message = `include names ${JSON.stringify(name)}, which is no tool of mode "${mode}"${why}; there are ${names(there)}`;
    throw new SandboxError('INVALID_ARGUMENT', message, { include: name });
  }
  return there.filter(({ definition }) => include.includes(definition.name));
}
