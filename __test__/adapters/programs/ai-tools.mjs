// sandboxTools() with AI SDK 5, 6 or 7, as the first argument says: what a program sees of it.
import { SandboxManager } from 'cofferdam';
import { sandboxTools } from 'cofferdam/ai';
import { results, scriptedModel } from './scripted-model.mjs';

const [sdk, workflow] = process.argv.slice(2);
const { generateText, streamText, stepCountIs, ToolLoopAgent, Experimental_Agent } = await import(sdk);
const manager = new SandboxManager();
const scope = { workflow };
const tools = sandboxTools(manager, { scope, image: 'python' });
const settings = { tools, stopWhen: stepCountIs(10) };
const seen = { names: Object.keys(tools) };

// A model that writes a program, runs it, and says what it printed.
let told;
const writer = await scriptedModel(sdk, (prompt, step, given) => {
  told = given;
  if (step === 1) return { name: 'sandbox_fs_write', input: { path: 'main.py', content: 'print(6 * 7)' } };
  if (step === 2) return { name: 'sandbox_exec', input: { command: 'python main.py' } };
  return `It printed ${results(prompt)[0].stdout.trim()}.`;
});
const generated = await generateText({ ...settings, model: writer, prompt: 'What is 6 times 7?' });
seen.text = generated.text;
seen.execSchema = told.find(({ name }) => name === 'sandbox_exec').inputSchema;
seen.written = generated.steps[0].toolResults[0].output;

// The same tools in an agent.
const Agent = ToolLoopAgent ?? Experimental_Agent;
const reader = await scriptedModel(sdk, (prompt, step) =>
  step === 1 ? { name: 'sandbox_fs_read', input: { path: 'main.py' } } : JSON.stringify(results(prompt)[0]),
);
seen.agent = JSON.parse((await new Agent({ ...settings, model: reader }).generate({ prompt: 'Read it.' })).text);

// A command that goes on when what it printed was seen, streamed.
const sandbox = await manager.open({ scope });
const slow = 'for i in 1 2 3; do echo "line $i"; until [ -e seen$i ] || [ $i = 3 ]; do sleep 0.05; done; done';
const talker = await scriptedModel(sdk, (_, step) =>
  step === 1 ? { name: 'sandbox_exec', input: { command: slow } } : 'Done.',
);
const streamed = streamText({ ...settings, model: talker, prompt: 'Go.' });
const parts = [];
for await (const part of streamed.fullStream) {
  parts.push(part);
  if (part.type !== 'tool-result' || !part.preliminary) continue;
  for (const [, line] of part.output.stdout.matchAll(/line (\d)/g)) await sandbox.files.write(`seen${line}`, '');
}
seen.stream = parts
  .filter(({ type }) => type === 'tool-result')
  .map(({ preliminary = false, output }) => ({ preliminary, output }));

// What a model writes wrong comes back to it as a result.
const clumsy = await scriptedModel(sdk, (prompt, step) =>
  step === 1 ? { name: 'sandbox_exec', input: { command: 7 } } : JSON.stringify(results(prompt)[0]),
);
seen.wrong = JSON.parse((await generateText({ ...settings, model: clumsy, prompt: '' })).text);

// Aborted in the middle of a command.
const count = async () =>
  (await sandbox.exec('cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c "[s]leep 1004"')).stdout.trim();
const sleeper = await scriptedModel(sdk, () => ({
  name: 'sandbox_exec',
  input: { command: 'sleep 1004 & sleep 1004' },
}));
const until = async (look) => {
  while (!(await look())) await new Promise((resolve) => setTimeout(resolve, 25));
};
for (const [name, start] of Object.entries({
  generate: (signal) => generateText({ ...settings, model: sleeper, prompt: '', abortSignal: signal }),
  stream: async (signal) =>
    streamText({ ...settings, model: sleeper, prompt: '', abortSignal: signal, onError() {} }).consumeStream(),
})) {
  const abort = new AbortController();
  const call = start(abort.signal).then(
    () => 'resolved',
    (error) => error.name,
  );
  await until(async () => Number(await count()) > 0);
  abort.abort();
  const outcome = await call;
  await until(async () => (await count()) === '0');
  seen[`aborted ${name}`] = { outcome, left: await count() };
}

// Approval: a call that needs it does not run before it is given.
const careful = sandboxTools(manager, {
  scope,
  needsApproval: { sandbox_exec: ({ command }) => command.startsWith('rm') },
});
const remover = await scriptedModel(sdk, (prompt, step) =>
  step === 1
    ? [
        { name: 'sandbox_exec', input: { command: 'ls main.py' } },
        { name: 'sandbox_exec', input: { command: 'rm main.py' } },
      ]
    : JSON.stringify(results(prompt)),
);
const messages = [{ role: 'user', content: 'Clean up.' }];
const asked = await generateText({ model: remover, tools: careful, stopWhen: stepCountIs(3), messages });
const requests = asked.content.filter(({ type }) => type === 'tool-approval-request');
seen.approval = {
  requested: requests.map(({ toolCall }) => toolCall.input.command),
  results: asked.steps[0].toolResults.map(({ output }) => output),
  stillThere: await sandbox.files.exists('main.py'),
};
if (requests.length > 0) {
  const answers = requests.map(({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved: true }));
  messages.push(...asked.response.messages, { role: 'tool', content: answers });
  // As on a server that has forgotten everything but the messages.
  const again = sandboxTools(manager, {
    scope,
    needsApproval: { sandbox_exec: ({ command }) => command.startsWith('rm') },
  });
  await generateText({ model: remover, tools: again, stopWhen: stepCountIs(3), messages });
  seen.approval.afterwards = await sandbox.files.exists('main.py');
}

await manager.endScope(scope);
await manager.close();
console.log(JSON.stringify(seen));
