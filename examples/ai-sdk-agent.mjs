// A Vercel AI SDK agent with its own sandbox. It writes a program and runs it; the output is streamed while it runs, and a
// deletion waits for a person's approval.
import { stepCountIs, ToolLoopAgent } from 'ai';
import { SandboxManager } from 'cofferdam';
import { sandboxTools } from 'cofferdam/ai';
import { call, scriptedModel } from './support/scripted-model.mjs';

const program = `import time
total = 0
for month, sales in enumerate([120, 90, 210], start=1):
    total += sales
    print(f"month {month}: {sales}", flush=True)
    time.sleep(0.3)
print("total:", total)
`;

// For a real model: import { openai } from '@ai-sdk/openai'; const model = openai('gpt-5');
const model = scriptedModel(
  () => call('sandbox_fs_write', { path: 'sales.py', content: program }),
  () => call('sandbox_exec', { command: 'python sales.py' }),
  ({ stdout }) => [
    `The ${stdout.trim().split('\n').at(-1)}. I clean up.`,
    call('sandbox_fs_delete', { path: 'sales.py' }),
  ],
  ({ deleted }) => (deleted ? 'The program is gone.' : 'The program is still there.'),
);

const manager = new SandboxManager();
const tools = sandboxTools(manager, {
  image: 'python',
  scope: { agent: `example-${process.pid}` },
  needsApproval: { sandbox_fs_delete: true },
});
const agent = new ToolLoopAgent({ model, tools, stopWhen: stepCountIs(10) });

/** Prints a turn as it streams; returns the messages it added and the approvals it asks for. */
async function turn(messages) {
  const result = await agent.stream({ messages });
  const requests = [];
  for await (const part of result.fullStream) {
    if (part.type === 'text-delta') console.log(part.text);
    if (part.type === 'tool-call') console.log(`▸ ${part.toolName} ${JSON.stringify(part.input).slice(0, 60)}`);
    if (part.type === 'tool-result' && part.output.status === 'running') {
      console.log(`  │ … ${part.output.stdout.trimEnd().split('\n').at(-1)}`);
    }
    if (part.type === 'tool-approval-request') requests.push(part);
    if (part.type === 'error') throw part.error;
  }
  return { added: (await result.response).messages, requests };
}

try {
  const messages = [{ role: 'user', content: 'What are the sales of the first quarter?' }];
  const { added, requests } = await turn(messages);
  console.log(`  (a person approves ${requests.map(({ toolCall }) => toolCall.toolName).join()})`);
  const approvals = requests.map(({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved: true }));
  await turn([...messages, ...added, { role: 'tool', content: approvals }]);
} finally {
  await manager.close();
}
