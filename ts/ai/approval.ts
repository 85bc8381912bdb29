/**
 * Which calls a person has to approve first.
 *
 * Invariant: a call that needs approval never runs on an SDK that cannot ask for it. AI SDK 6 and 7 ask each tool; AI SDK 5
 * knows nothing of approval, and would just run it.
 */
import * as check from '../internal/check';
import type { ToolFailure } from '../tools/toolset';

type Answer = boolean | PromiseLike<boolean>;

/**
 * Whether a call needs approval: all, those for which the function says so, or by the name of the tool.
 *
 * @example
 * ```ts
 * sandboxTools(manager, { needsApproval: { sandbox_fs_delete: true, sandbox_exec: ({ command }) => /\brm\b/.test(`${command}`) } });
 * ```
 */
export type NeedsApproval =
  | boolean
  | ((name: string, input: Record<string, unknown>) => Answer)
  | { readonly [name: string]: boolean | ((input: Record<string, unknown>) => Answer) };

/** What an SDK hands over with a call, as far as it tells of approval. */
export interface CallOptions {
  messages?: readonly { role: string; content: unknown }[];
  abortSignal?: AbortSignal;
}

export class Approval {
  readonly #needed: (name: string, input: Record<string, unknown>) => Answer;
  #sdkAsks = false;

  constructor(rule: NeedsApproval, names: readonly string[]) {
    this.#needed = toFunction(rule, names);
  }

  /** For the tool's own `needsApproval`. */
  async ask(name: string, input: unknown): Promise<boolean> {
    this.#sdkAsks = true;
    return this.#needed(name, toRecord(input));
  }

  /** What to answer in place of a call that nobody was asked about. */
  async refusal(name: string, input: unknown, options: CallOptions): Promise<ToolFailure | undefined> {
    // Only AI SDK 7 hands over a `context`; 6 has asked this tool, or shows the approval in the messages.
    this.#sdkAsks ||= 'context' in options || tellsOfApproval(options.messages ?? []);
    if (this.#sdkAsks || !(await this.#needed(name, toRecord(input)))) return undefined;
    return {
      ok: false,
      code: 'POLICY_DENIED',
      error: `${name} needs the approval of a person, and this program has no way to ask for it`,
      hint: 'Do it another way. For the developer: needsApproval works with AI SDK 6 and later.',
    };
  }
}

function toFunction(rule: NeedsApproval, names: readonly string[]) {
  if (typeof rule === 'function') return rule;
  if (typeof rule === 'boolean') return () => rule;
  for (const name of Object.keys(check.object('needsApproval', rule))) {
    // A misspelt name would let pass what it was meant to stop.
    if (!names.includes(name)) throw check.invalid('a name in needsApproval', `one of ${names.join(', ')}`, name);
  }
  return (name: string, input: Record<string, unknown>) => {
    const needed = rule[name] ?? false;
    return typeof needed === 'function' ? needed(input) : needed;
  };
}

function toRecord(input: unknown): Record<string, unknown> {
  return typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : {};
}

function tellsOfApproval(messages: readonly { role: string; content: unknown }[]): boolean {
  return messages.some(
    ({ role, content }) =>
      role === 'tool' && Array.isArray(content) && content.some(({ type }) => type === 'tool-approval-response'),
  );
}
