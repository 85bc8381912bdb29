import Anthropic from '@anthropic-ai/sdk';
import { anthropicTools } from 'cofferdam/tools';
import { describeWithEngine, testManager, unique } from '../support';
import { answering } from './http';

describeWithEngine('anthropicTools with @anthropic-ai/sdk', () => {
  const manager = testManager({ defaults: { image: 'python' } });

  test('answer a message’s tool uses until it says something', async () => {
    const { fetch, requests } = answering((body: { messages: Anthropic.MessageParam[] }, step) => {
      const last = body.messages.at(-1)?.content as Anthropic.ToolResultBlockParam[];
      const content =
        step === 1
          ? [
              { type: 'text', text: 'I will look.' },
              { type: 'tool_use', id: 'tu_1', name: 'sandbox_exec', input: { command: 'echo $((6*7))' } },
              { type: 'tool_use', id: 'tu_2', name: 'sandbox_fs_read', input: { path: 'missing' } },
            ]
          : [{ type: 'text', text: JSON.parse(last[0]?.content as string).stdout }];
      return {
        id: 'm',
        type: 'message',
        role: 'assistant',
        content,
        stop_reason: step === 1 ? 'tool_use' : 'end_turn',
      };
    });
    const client = new Anthropic({ apiKey: 'none', fetch });
    const { tools, answer } = anthropicTools(manager, { scope: { workflow: unique() } });
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'What is 6 times 7?' }];
    let message: Anthropic.Message;
    do {
      message = await client.messages.create({ model: 'm', max_tokens: 100, messages, tools });
      messages.push({ role: 'assistant', content: message.content });
      if (message.stop_reason === 'tool_use') messages.push({ role: 'user', content: await answer(message.content) });
    } while (message.stop_reason === 'tool_use');
    expect(message.content).toEqual([{ type: 'text', text: '42\n' }]);
    expect(messages[2]?.content).toMatchObject([
      { type: 'tool_result', tool_use_id: 'tu_1', is_error: false },
      { type: 'tool_result', tool_use_id: 'tu_2', is_error: true, content: expect.stringContaining('FILE_NOT_FOUND') },
    ]);
    expect(requests[0]).toMatchObject({
      tools: expect.arrayContaining([
        expect.objectContaining({ name: 'sandbox_exec', input_schema: expect.objectContaining({ type: 'object' }) }),
      ]),
    });
  });

  test('tell a command that fails from a call that could not be carried out', async () => {
    const { call } = anthropicTools(manager, { scope: { workflow: unique() } });
    const failed = await call({ type: 'tool_use', id: '1', name: 'sandbox_exec', input: { command: 'exit 3' } });
    expect(failed.is_error).toBe(false);
    expect(JSON.parse(failed.content)).toMatchObject({ exit_code: 3 });
    const wrong = await call({ type: 'tool_use', id: '2', name: 'sandbox_exec', input: 'ls' });
    expect(wrong.is_error).toBe(true);
  });
});
