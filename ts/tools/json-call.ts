/**
 * A call with JSON text as its input and its result, as APIs without a framework have it.
 *
 * Invariant: as for `Toolset.call()`, text that is not JSON gets an answer that the model can read.
 */
import type { ToolCallOptions, ToolFailure, Toolset } from './toolset';

/** The result of a call, as text for a model. */
export async function callWithJson(
  toolset: Toolset,
  name: string,
  input: string,
  options?: ToolCallOptions,
): Promise<string> {
  const parsed = parse(input);
  return JSON.stringify('failure' in parsed ? parsed.failure : await toolset.call(name, parsed.value, options));
}

function parse(input: string): { value: unknown } | { failure: ToolFailure } {
  try {
    // Models write nothing for a tool that needs no input.
    return { value: input.trim() === '' ? {} : JSON.parse(input) };
  } catch (error) {
    const failure: ToolFailure = {
      ok: false,
      code: 'INVALID_ARGUMENT',
      error: `the arguments are not valid JSON: ${(error as Error).message}`,
      hint: 'Write the arguments again, as one JSON object.',
    };
    return { failure };
  }
}
