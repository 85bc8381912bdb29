// A stand-in for a model, so that the examples run without a key: it answers each step as a function says, which is given
// the results of the last tool calls. To use a real one, write for example
//   import { openai } from '@ai-sdk/openai';  const model = openai('gpt-5');
// in place of scriptedModel(…).
import { MockLanguageModelV4 } from 'ai/test';

const USAGE = { inputTokens: { total: 0 }, outputTokens: { total: 0 } };

/** Calls a tool. */
export const call = (toolName, input) => ({ toolName, input });

/** `steps`: one function per step, from the last results to a text or to calls of tools. */
export function scriptedModel(...steps) {
  let count = 0;
  async function next({ prompt }) {
    const told = prompt.findLast(({ role }) => role === 'tool')?.content ?? [];
    const answer = [steps[count](...told.map(({ output }) => output.value))].flat();
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
