import { genkitTools } from 'cofferdam/tools';
import { type GenerateRequest, genkit, type MessageData } from 'genkit';
import { countProcesses, describeWithEngine, testManager, unique, until } from '../support';

type Part = MessageData['content'][number];

/** An instance with a model that does what a function says. */
function instance(respond: (request: GenerateRequest, step: number) => Part) {
  const ai = genkit({});
  let steps = 0;
  const model = ai.defineModel({ name: 'scripted', supports: { tools: true } }, async (request) => {
    steps += 1;
    return { message: { role: 'model', content: [respond(request, steps)] }, finishReason: 'stop' };
  });
  return { ai, model };
}

function call(name: string, input: object): Part {
  return { toolRequest: { name, ref: name, input } };
}

function lastOutput({ messages }: GenerateRequest): { stdout?: string; code?: string } {
  return messages.at(-1)?.content[0]?.toolResponse?.output as { stdout?: string };
}

describeWithEngine('genkitTools with genkit', () => {
  const manager = testManager({ defaults: { image: 'python' } });

  test('let a model write a program, run it and say what it printed', async () => {
    const { ai, model } = instance((request, step) => {
      if (step === 1) return call('sandbox_fs_write', { path: 'main.py', content: 'print(6 * 7)' });
      if (step === 2) return call('sandbox_exec', { command: 'python main.py' });
      return { text: `It printed ${lastOutput(request).stdout}` };
    });
    const tools = genkitTools(manager, { ai, scope: { workflow: unique() } });
    const { text } = await ai.generate({ model, prompt: 'What is 6 times 7?', tools });
    expect(text).toBe('It printed 42\n');
  });

  test('can be used by name, as in prompt files', async () => {
    const { ai, model } = instance((request, step) =>
      step === 1 ? call('sandbox_exec', { command: 'echo by name' }) : { text: lastOutput(request).stdout ?? '' },
    );
    genkitTools(manager, { ai, scope: { workflow: unique() } });
    expect((await ai.generate({ model, prompt: 'Go.', tools: ['sandbox_exec'] })).text).toBe('by name\n');
  });

  test('are there for many sandboxes on one instance when they are dynamic, and never mixed up', async () => {
    const { ai, model } = instance((request, step) =>
      step % 2 === 1 ? call('sandbox_exec', { command: 'cat whose' }) : { text: lastOutput(request).stdout ?? '' },
    );
    const users = ['ann', 'bob'].map((name) => ({ name, scope: { user: unique(name) } }));
    for (const { name, scope } of users) await manager.open({ scope, files: { whose: name } });
    const sets = users.map(({ scope }) => genkitTools(manager, { ai, scope, dynamic: true }));
    for (const [index, tools] of sets.entries()) {
      expect((await ai.generate({ model, prompt: 'Go.', tools })).text).toBe(users[index]?.name);
    }
    genkitTools(manager, { ai });
    expect(() => genkitTools(manager, { ai })).toThrow(/dynamic: true/);
  });

  test('end a command when the call is aborted, or the generation whose signal they were given', async () => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope });
    const input = { command: 'sleep 1008 & sleep 1008' };
    const { ai, model } = instance(() => call('sandbox_exec', input));
    const ofCall = new AbortController();
    const ofGeneration = new AbortController();
    const tools = genkitTools(manager, { ai, scope, signal: ofGeneration.signal });
    const exec = tools.find(({ __action }) => __action.name === 'sandbox_exec') as (typeof tools)[number];
    const cases = [
      { abort: ofCall, start: () => exec.run(input, { abortSignal: ofCall.signal }) },
      {
        abort: ofGeneration,
        start: () => ai.generate({ model, prompt: 'Go.', tools, abortSignal: ofGeneration.signal }),
      },
    ];
    for (const { abort, start } of cases) {
      const outcome = start().then(
        () => 'done',
        () => 'aborted',
      );
      await until(async () => (await countProcesses(sandbox, 'sleep 1008')) >= 2);
      abort.abort();
      expect(await outcome).toBe('aborted');
      expect(await countProcesses(sandbox, 'sleep 1008')).toBe(0);
    }
  });
});
