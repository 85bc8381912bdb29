// A model of AI SDK 5, 6 or 7 that does what a function says: it is given the prompt, and answers with what to call or say.
const USAGE = {
  5: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  later: {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  },
};

/** `respond(prompt, step)` gives a text, or `{ name, input }` for a tool call, or several of these. */
export async function scriptedModel(sdk, respond) {
  const test = await import(`${sdk}/test`);
  const Model = test.MockLanguageModelV4 ?? test.MockLanguageModelV3 ?? test.MockLanguageModelV2;
  const old = Model === test.MockLanguageModelV2;
  let steps = 0;
  const next = async ({ prompt, tools }) => {
    steps += 1;
    const step = steps;
    const parts = [await respond(prompt, step, tools)].flat();
    const content = parts.map((part, index) =>
      typeof part === 'string'
        ? { type: 'text', text: part }
        : {
            type: 'tool-call',
            toolCallId: `call-${step}-${index}`,
            toolName: part.name,
            input: typeof part.input === 'string' ? part.input : JSON.stringify(part.input ?? {}),
          },
    );
    const reason = parts.every((part) => typeof part === 'string') ? 'stop' : 'tool-calls';
    return {
      content,
      finishReason: old ? reason : { unified: reason, raw: undefined },
      usage: old ? USAGE[5] : USAGE.later,
      warnings: [],
    };
  };
  return new Model({
    doGenerate: next,
    doStream: async (options) => {
      const { content, ...finish } = await next(options);
      const parts = content.flatMap((part, index) =>
        part.type === 'text'
          ? [
              { type: 'text-start', id: `${index}` },
              { type: 'text-delta', id: `${index}`, delta: part.text },
              { type: 'text-end', id: `${index}` },
            ]
          : [part],
      );
      const all = [{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...finish }];
      return { stream: ReadableStream.from(all) };
    },
  });
}

/** The results of the tool calls that the model was last told of, newest last. */
export function results(prompt) {
  const last = prompt.findLast(({ role }) => role === 'tool');
  return last === undefined ? [] : last.content.map(({ output }) => output?.value ?? output);
}
