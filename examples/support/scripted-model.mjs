// A scripted model, so that the examples run without an API key: one function per step receives the results of the last tool
// calls and returns the answer. To use a real model, write for example
//   import { openai } from '@ai-sdk/openai';  const model = openai('gpt-5');
// in place of scriptedModel(…).
import { MockLanguageModelV4 } from 'ai/test';

const USAGE = { inputTokens: { total: 0 }, outputTokens: { total: 0 } };

/** A tool call. */
export const call = (toolName, input) => ({ toolName, input });

/** `steps`: one function per step, from the last tool results to text or tool calls. */
export function scriptedModel(...steps) {
  let count = 0;
  async function next({ prompt }) {
    const results = prompt.findLast(({ role }) => role === 'tool')?.content ?? [];
    const answer = [steps[count](...results.map(({ output }) => output.value))].flat();
    count += 1;
    const content = answer.map((part, index) =>
      typeof part === 'string'
        ? { type: 'text', text: part }
        : {
            type: 'tool-call',
            toolCallId: `${count}-${index}`,
            toolName: part.toolName,
            input: JSON.stringify(part.input),
          },
    );
    const unified = answer.some((part) => typeof part !== 'string') ? 'tool-calls' : 'stop';
    return { content, finishReason: { unified }, usage: USAGE, warnings: [] };
  }
  return new MockLanguageModelV4({
    doGenerate: next,
    async doStream(options) {
      const { content, ...finish } = await next(options);
      const parts = content.flatMap((part, index) => {
        if (part.type !== 'text') return [part];
        const id = `${index}`;
        return [
          { type: 'text-start', id },
          { type: 'text-delta', id, delta: part.text },
          { type: 'text-end', id },
        ];
      });
      const all = [{ type: 'stream-start', warnings: [] }, ...parts, { type: 'finish', ...finish }];
      return { stream: ReadableStream.from(all) };
    },
  });
}
