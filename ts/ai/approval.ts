/**
 * Asking for approval, by what each SDK can do.
 *
 * Invariant: a call that needs approval never runs on an SDK that cannot ask for it. AI SDK 6 and 7 ask each tool; AI SDK 5
 * knows nothing of approval, and would just run it.
 */
import { type ApprovalRule, approvalRule, type NeedsApproval } from '../tools/approval';
import type { ToolFailure } from '../tools/toolset';

/** What an SDK hands over with a call, as far as it tells of approval. */
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

  /** For the tool's own `needsApproval`. */
  async ask(name: string, input: unknown): Promise<boolean> {
    this.#sdkAsks = true;
    return this.#needed(name, input);
  }

  /** What to answer in place of a call that nobody was asked about. */
  async refusal(name: string, input: unknown, options: CallOptions): Promise<ToolFailure | undefined> {
    // Only AI SDK 7 hands over a `context`; 6 has asked this tool, or shows the approval in the messages.
    this.#sdkAsks ||= 'context' in options || tellsOfApproval(options.messages ?? []);
    if (this.#sdkAsks || !(await this.#needed(name, input))) return undefined;
    return {
      ok: false,
      code: 'POLICY_DENIED',
      error: `${name} needs the approval of a person, and this program has no way to ask for it`,
      hint: 'Do it another way. For the developer: needsApproval works with AI SDK 6 and later.',
    };
  }
}

function tellsOfApproval(messages: readonly { role: string; content: unknown }[]): boolean {
  return messages.some(
    ({ role, content }) =>
      role === 'tool' && Array.isArray(content) && content.some(({ type }) => type === 'tool-approval-response'),
  );
}
