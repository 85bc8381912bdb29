import { Agent, Runner, type RunToolApprovalItem } from '@openai/agents';
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing';
import { openaiAgentTools, openaiTools } from 'cofferdam/tools';
import OpenAI from 'openai';
import { countProcesses, describeWithEngine, testManager, unique, until } from '../support';
import { answering } from './http';

const write = { path: 'main.py', content: 'print(6 * 7)' };
const exec = { command: 'python main.py' };

describeWithEngine('openaiTools with the openai package', () => {
  const manager = testManager({ defaults: { image: 'python' } });

  test('carry a chat completion’s tool calls out until it says something', async () => {
    const toolCall = (id: string, name: string, input: object) => ({
      finish_reason: 'tool_calls',
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name, arguments: JSON.stringify(input) } }],
      },
    });
    const { fetch, requests } = answering((body: { messages: { content: string }[] }, step) => ({
      id: 'c',
      object: 'chat.completion',
      created: 0,
      model: 'm',
      choices: [
        step === 1
          ? toolCall('call_1', 'sandbox_fs_write', write)
          : step === 2
            ? toolCall('call_2', 'sandbox_exec', exec)
            : {
                finish_reason: 'stop',
                index: 0,
                message: {
                  role: 'assistant',
                  content: `It is ${JSON.parse(body.messages.at(-1)?.content ?? '').stdout}`,
                },
              },
      ],
    }));
    const client = new OpenAI({ apiKey: 'none', fetch });
    const { tools, call } = openaiTools(manager, { scope: { workflow: unique() } });
    const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: 'user', content: 'What is 6 times 7?' }];
    let said: string | null = null;
    while (said === null) {
      const { choices } = await client.chat.completions.create({ model: 'm', messages, tools });
      const { message } = choices[0] as (typeof choices)[0];
      messages.push(message, ...(await Promise.all((message.tool_calls ?? []).map((toolCall) => call(toolCall)))));
      said = message.content;
    }
    expect(said).toBe('It is 42\n');
    expect(requests[0]).toMatchObject({
      tools: expect.arrayContaining([
        {
          type: 'function',
          function: expect.objectContaining({
            name: 'sandbox_exec',
            parameters: expect.objectContaining({ type: 'object' }),
          }),
        },
      ]),
    });
    expect(messages[2]).toMatchObject({ role: 'tool', tool_call_id: 'call_1' });
  });

  test('carry a response’s function calls out until it says something', async () => {
    const { fetch, requests } = answering((body: { input: { output?: string }[] }, step) => ({
      id: `r${step}`,
      object: 'response',
      output:
        step === 1
          ? [{ type: 'function_call', call_id: 'fc_1', name: 'sandbox_exec', arguments: '{"command":"echo $((6*7))"}' }]
          : [
              {
                type: 'message',
                role: 'assistant',
                content: [{ type: 'output_text', text: JSON.parse(body.input.at(-1)?.output ?? '').stdout }],
              },
            ],
    }));
    const client = new OpenAI({ apiKey: 'none', fetch });
    const { responsesTools, call } = openaiTools(manager, { scope: { workflow: unique() } });
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: 'What is 6 times 7?' }];
    const first = await client.responses.create({ model: 'm', input, tools: responsesTools });
    for (const item of first.output) if (item.type === 'function_call') input.push(item, await call(item));
    const second = await client.responses.create({ model: 'm', input, tools: responsesTools });
    expect(second.output_text).toBe('42\n');
    expect(input.at(-1)).toMatchObject({ type: 'function_call_output', call_id: 'fc_1' });
    expect(requests[0]).toMatchObject({
      tools: expect.arrayContaining([expect.objectContaining({ name: 'sandbox_exec', strict: false })]),
    });
  });

  test('answer arguments that are no JSON, tools that are not there and custom tools, for the model to read', async () => {
    const { call } = openaiTools(manager);
    const broken = await call({
      type: 'function',
      id: '1',
      function: { name: 'sandbox_exec', arguments: '{"command": "l' },
    });
    expect(broken).toMatchObject({ role: 'tool', tool_call_id: '1' });
    expect(JSON.parse(broken.content)).toMatchObject({
      ok: false,
      code: 'INVALID_ARGUMENT',
      error: expect.stringContaining('not valid JSON'),
    });
    const unknown = await call({ type: 'function', id: '2', function: { name: 'web_search', arguments: '' } });
    expect(JSON.parse(unknown.content)).toMatchObject({ ok: false, error: expect.stringContaining('web_search') });
    const custom = await call({ type: 'custom', id: '3', custom: { name: 'grammar', input: 'x' } });
    expect(JSON.parse(custom.content)).toMatchObject({ ok: false, error: expect.stringContaining('grammar') });
  });

  test('end a command when the call is aborted', async () => {
    const scope = { workflow: unique() };
    const { call } = openaiTools(manager, { scope });
    const sandbox = await manager.open({ scope });
    const abort = new AbortController();
    const running = call(
      { type: 'function_call', call_id: '1', name: 'sandbox_exec', arguments: '{"command":"sleep 1005"}' },
      { signal: abort.signal },
    );
    await until(() => countProcesses(sandbox, 'sleep 1005'));
    abort.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
    expect(await countProcesses(sandbox, 'sleep 1005')).toBe(0);
  });
});

describeWithEngine('openaiAgentTools with @openai/agents', () => {
  const manager = testManager({ defaults: { image: 'python' } });
  const runner = new Runner({ tracingDisabled: true });

  test('let an agent write a program, run it and say what it printed', async () => {
    const model = new ScriptedModel([
      [functionCall('sandbox_fs_write', write, { callId: '1' })],
      [functionCall('sandbox_exec', exec, { callId: '2' })],
      [assistantMessage('Done.')],
    ]);
    const tools = openaiAgentTools(manager, { scope: { workflow: unique() } });
    const result = await runner.run(new Agent({ name: 'Analyst', model, tools }), 'What is 6 times 7?');
    expect(result.finalOutput).toBe('Done.');
    const outputs = result.newItems.filter(({ type }) => type === 'tool_call_output_item').map((item) => item.rawItem);
    expect(JSON.stringify(outputs[1])).toContain('42');
    expect(model.firstCall?.request.tools.map((tool) => 'name' in tool && tool.name)).toContain('sandbox_exec');
  });

  test('wait for approval where it is needed', async () => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope });
    const model = new ScriptedModel([
      [functionCall('sandbox_exec', { command: 'ls' }, { callId: '0' })],
      [functionCall('sandbox_exec', { cmd: 'touch approved' }, { callId: '1' })],
      [assistantMessage('Done.')],
    ]);
    const tools = openaiAgentTools(manager, {
      scope,
      needsApproval: { sandbox_exec: ({ command }) => command !== 'ls' },
    });
    const agent = new Agent({ name: 'Careful', model, tools });
    const asked = await runner.run(agent, 'Go.');
    expect(asked.interruptions.map(({ rawItem }) => 'callId' in rawItem && rawItem.callId)).toEqual(['1']);
    expect(await sandbox.files.exists('approved')).toBe(false);
    asked.state.approve(asked.interruptions[0] as RunToolApprovalItem);
    const done = await runner.run(agent, asked.state);
    expect(done.finalOutput).toBe('Done.');
    expect(await sandbox.files.exists('approved')).toBe(true);
  });

  test('end a command when the run is aborted', async () => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope });
    const model = new ScriptedModel([
      [functionCall('sandbox_exec', { command: 'sleep 1006 & sleep 1006' }, { callId: '1' })],
    ]);
    const abort = new AbortController();
    const agent = new Agent({ name: 'Sleeper', model, tools: openaiAgentTools(manager, { scope }) });
    const run = runner.run(agent, 'Sleep.', { signal: abort.signal });
    await until(async () => (await countProcesses(sandbox, 'sleep 1006')) >= 2);
    abort.abort();
    await run.catch(() => {});
    await until(async () => (await countProcesses(sandbox, 'sleep 1006')) === 0);
  });
});
