// A Mastra agent with our tools. Mastra takes models of AI SDK.
import { Agent } from '@mastra/core/agent';
import { SandboxManager } from 'cofferdam';
import { mastraTools } from 'cofferdam/tools';
import { results, scriptedModel } from './scripted-model.mjs';

const [workflow] = process.argv.slice(2);
const manager = new SandboxManager();
const model = await scriptedModel('ai-5', (prompt, step) => {
  if (step === 1) return { name: 'sandbox_fs_write', input: { path: 'main.py', content: 'print(6 * 7)' } };
  if (step === 2) return { name: 'sandbox_exec', input: { command: 'python main.py' } };
  return `It printed ${results(prompt)[0].stdout.trim()}.`;
});
const agent = new Agent({
  id: 'analyst',
  name: 'Analyst',
  instructions: 'Use the sandbox.',
  model,
  tools: mastraTools(manager, { scope: { workflow }, image: 'python' }),
});
const { text, steps } = await agent.generate('What is 6 times 7?');
const asked = steps.flatMap(({ toolCalls }) => toolCalls.map((call) => (call.payload ?? call).toolName));
await manager.close();
console.log(JSON.stringify({ text, asked }));
