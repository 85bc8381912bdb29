/**
 * Sandbox configuration by the authors of agents: in the front matter of a prompt, in YAML, or as an object.
 *
 * @example
 * ```ts
 * import { parseSandboxConfig, toToolContext } from 'cofferdam/frontmatter';
 *
 * const config = parseSandboxConfig(await readFile('agents/coder.prompt', 'utf8'));
 * const tools = createToolset(manager, toToolContext(config, { scope: { workflow: 'wf_abc123' } }));
 * ```
 *
 * @module cofferdam/frontmatter
 */
import type { ToolContext } from '../tools/toolset';
import type { SandboxConfig } from './config';
import { Fields, given, RUNTIMES } from './fields';
import { fault, find, findInPrompt } from './source';

export type { SandboxConfig } from './config';

/**
 * Reads and checks a configuration: the name of a runtime (`python`), YAML, a prompt file with front matter, or an object,
 * with or without the key `sandbox`. Throws `INVALID_ARGUMENT` with the field, the value, what is allowed, and the line.
 *
 * @example
 * ```ts
 * parseSandboxConfig('python'); // { mode: 'compute', runtime: 'python', … }
 * parseSandboxConfig('---\nmodel: any\nsandbox:\n  mode: code\n  runtime: node\n---\nYou are a developer.');
 * ```
 */
export function parseSandboxConfig(source: string | object): SandboxConfig {
  const found = find(source);
  if (found === undefined) {
    throw fault('the front matter has no "sandbox"; write for example "sandbox: python"');
  }
  return new Fields(found).config();
}

/**
 * As {@link parseSandboxConfig}, for a prompt file that may have no sandbox: `undefined` when it has no front matter, or no
 * `sandbox` in it.
 *
 * @example
 * ```ts
 * const config = findSandboxConfig('---\nmodel: any\n---\nYou are a poet.'); // undefined
 * ```
 */
export function findSandboxConfig(prompt: string): SandboxConfig | undefined {
  const found = findInPrompt(prompt);
  return found && new Fields(found).config();
}

/**
 * The context for `createToolset()`, from the configuration of an agent and the host's own options, such as the scope. Where
 * both set a field, the host wins.
 *
 * @example
 * ```ts
 * const context = toToolContext(parseSandboxConfig('python'), { scope: { workflow: runId, agent: agentRunId } });
 * ```
 */
export function toToolContext(config: SandboxConfig, host: ToolContext = {}): ToolContext {
  const { mode, runtime, image, session, share, limits, network, packages } = config;
  const scope = share === 'agent' ? ofAgent(host.scope) : host.scope;
  const asked: ToolContext = {
    mode,
    ...(mode === 'compute'
      ? { runtime: RUNTIMES[runtime as keyof typeof RUNTIMES], image }
      : { image: image ?? runtime }),
    // Without a scope, the default session belongs to the tools alone.
    session: session === 'default' ? undefined : session,
    limits,
    network,
    packages: Object.keys(packages).length === 0 ? undefined : packages,
    idleTimeoutMs: config.idleTimeoutMs,
    commandTimeoutMs: config.timeoutMs,
    maxResultBytes: config.maxOutputBytes,
    maxFileBytes: config.maxFileBytes,
    maxFiles: config.maxFiles,
  };
  return given({ ...given(asked), ...given(host), scope });
}

function ofAgent(scope: ToolContext['scope']): ToolContext['scope'] {
  if (scope?.agent === undefined) {
    throw fault('sandbox.session is "agent": pass the agent run to toToolContext() as scope.agent');
  }
  return { agent: scope.agent };
}
