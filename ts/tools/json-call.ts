/**
 * A call as models without a framework make it: the input comes as JSON text, the result goes back as JSON text.
 *
 * Invariant: as that of `Toolset.call()`: text that is no JSON is answered, for the model to read.
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
    // Models write nothing at all for a tool that needs no input.
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
