/**
 * Approval of calls, by what each SDK supports.
 *
 * Invariant: a call that needs approval never runs on an SDK that cannot ask for it. AI SDK 6 and 7 ask each tool. AI SDK 5
 * does not support approval, and would run the call.
 */
import { type ApprovalRule, approvalRule, type NeedsApproval } from '../tools/approval';
import type { ToolFailure } from '../tools/toolset';

/** What an SDK passes with a call, as far as approval needs it. */
export interface CallOptions {
  messages?: readonly { role: string; content: unknown }[];
  abortSignal?: AbortSignal;
}

export class Approval {
  readonly #needed: ApprovalRule;
  #sdkAsks = false;

  constructor(rule: NeedsApproval, names: readonly string[]) {
    this.#needed = approvalRule(rule, names);
  }

  /** For the `needsApproval` of the tool. */
  async ask(name: string, input: unknown): Promise<boolean> {
    this.#sdkAsks = true;
    return this.#needed(name, input);
  }

  /** The answer to a call that needs approval when nobody was asked. */
  async refusal(name: string, input: unknown, options: CallOptions): Promise<ToolFailure | undefined> {
    // Only AI SDK 7 passes a `context`; 6 has asked this tool, or has the approval in the messages.
    this.#sdkAsks ||= 'context' in options || hasApproval(options.messages ?? []);
    if (this.#sdkAsks || !(await this.#needed(name, input))) return undefined;
    return {
      ok: false,
      code: 'POLICY_DENIED',
      error: `${name} needs the approval of a person, and this program cannot ask for it`,
      hint: 'Do it another way. For the developer: needsApproval works with AI SDK 6 and later.',
    };
  }
}

function hasApproval(messages: readonly { role: string; content: unknown }[]): boolean {
  return messages.some(
    ({ role, content }) =>
      role === 'tool' && Array.isArray(content) && content.some(({ type }) => type === 'tool-approval-response'),
  );
}
