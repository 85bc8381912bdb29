/** Which calls a person has to approve first. */
import * as check from '../internal/check';
import { tools } from './catalogue';
import { readInput } from './input';

type Answer = boolean | PromiseLike<boolean>;

/**
 * Which calls need approval: all of them, those that a function picks, or by tool name.
 *
 * @example
 * ```ts
 * const tools = sandboxTools(manager, {
 *   needsApproval: { sandbox_fs_delete: true, sandbox_exec: ({ command }) => /\brm\b/.test(`${command}`) },
 * });
 * ```
 */
export type NeedsApproval =
  | boolean
  | ((name: string, input: Record<string, unknown>) => Answer)
  | { readonly [name: string]: boolean | ((input: Record<string, unknown>) => Answer) };

/** Whether a call needs approval, with its input as the model wrote it. */
export type ApprovalRule = (name: string, input: unknown) => Promise<boolean>;

/**
 * The rule as a function. It gets the input with aliases resolved, so that a model cannot bypass it by writing `cmd` for
 * `command`. Input that the tool will reject needs no approval.
 */
export function approvalRule(rule: NeedsApproval, names: readonly string[]): ApprovalRule {
  if (typeof rule === 'boolean') return async () => rule;
  if (typeof rule === 'function') {
    return async (name, input) => {
      const taken = takenBy(name, input);
      return taken !== undefined && rule(name, taken);
    };
  }
  for (const name of Object.keys(check.object('needsApproval', rule))) {
    // A misspelt name would approve what it was meant to stop.
    if (!names.includes(name)) throw check.invalid('a name in needsApproval', `one of ${names.join(', ')}`, name);
  }
  return async (name, input) => {
    const needed = Object.hasOwn(rule, name) ? (rule[name] ?? false) : false;
    if (typeof needed === 'boolean') return needed;
    const taken = takenBy(name, input);
    return taken !== undefined && needed(taken);
  };
}

function takenBy(name: string, input: unknown): Record<string, unknown> | undefined {
  const tool = tools.find(({ definition }) => definition.name === name);
  try {
    return tool && (readInput(tool, input) as Record<string, unknown>);
  } catch {
    return undefined;
  }
}
