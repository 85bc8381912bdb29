/** What the suites of tools share: sets of tools that are closed afterwards, and the two kinds of answers. */
import type { SandboxManager } from 'cofferdam';
import { createToolset, isToolFailure, type ToolContext, type ToolFailure, type Toolset } from 'cofferdam/tools';

const toolsets: Toolset[] = [];

/** Tools that are closed after the suite. */
export function tools(manager: SandboxManager, context: ToolContext = {}): Toolset {
  const toolset = createToolset(manager, { image: 'linux', ...context });
  toolsets.push(toolset);
  return toolset;
}

type Caller = Pick<Toolset, 'call'>;

/** The answer of a call that must be carried out. */
export async function done(toolset: Caller, name: string, input: unknown = {}) {
  const result = await toolset.call(name, input);
  if (isToolFailure(result)) throw new Error(`${name} failed: ${JSON.stringify(result)}`);
  return result as Record<string, unknown>;
}

/** The answer of a call that must fail: it says what is wrong and what to do, and shows nothing of the machinery. */
export async function refused(toolset: Caller, name: string, input: unknown): Promise<ToolFailure> {
  const result = await toolset.call(name, input);
  if (!isToolFailure(result)) throw new Error(`${name} was carried out: ${JSON.stringify(result).slice(0, 500)}`);
  expect(result.error.trim()).not.toBe('');
  expect(result.hint?.trim()).not.toBe('');
  const shown = JSON.stringify(result);
  expect(shown.length).toBeLessThan(4_000);
  expect(shown).not.toMatch(/\n\s+at |node_modules|\.[jt]s:\d|docker\.sock|object Object/);
  return result;
}

afterAll(async () => {
  await Promise.all(toolsets.splice(0).map((toolset) => toolset.close()));
});
