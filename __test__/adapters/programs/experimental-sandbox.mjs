// A tool of the program's own that works in the sandbox it was given by AI SDK 7.
import { generateText, jsonSchema, stepCountIs, tool } from 'ai';
import { SandboxManager } from 'cofferdam';
import { sandboxSession } from 'cofferdam/ai';
import { results, scriptedModel } from './scripted-model.mjs';

const manager = new SandboxManager();
const sandbox = await manager.open({ image: 'python' });

const python = tool({
  description: ({ experimental_sandbox }) => `Runs Python. ${experimental_sandbox.description}`,
  inputSchema: jsonSchema({ type: 'object', properties: { code: { type: 'string' } }, required: ['code'] }),
  async execute({ code }, { experimental_sandbox, abortSignal }) {
    await experimental_sandbox.writeTextFile({ path: 'main.py', content: code, abortSignal });
    return experimental_sandbox.run({ command: 'python main.py', abortSignal });
  },
});

let told;
const model = await scriptedModel('ai', (prompt, step, tools) => {
  told = tools[0].description;
  return step === 1
    ? { name: 'python', input: { code: 'print(6 * 7)' } }
    : `It is ${results(prompt)[0].stdout.trim()}.`;
});
const { text } = await generateText({
  model,
  tools: { python },
  stopWhen: stepCountIs(5),
  experimental_sandbox: sandboxSession(sandbox),
  prompt: 'What is 6 times 7?',
});
await manager.close();
console.log(JSON.stringify({ text, told }));
