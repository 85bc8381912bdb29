import { AIMessage, type BaseMessage, HumanMessage, type ToolMessage } from '@langchain/core/messages';
import { fakeModel } from '@langchain/core/testing';
import { isLangChainTool } from '@langchain/core/tools';
import { langchainTools } from 'cofferdam/tools';
import { countProcesses, describeWithEngine, testManager, unique, until } from '../support';

describeWithEngine('langchainTools with @langchain/core', () => {
  const manager = testManager({ defaults: { image: 'python' } });

  function byName(scope: { workflow: string }) {
    return Object.fromEntries(langchainTools(manager, { scope }).map((tool) => [tool.name, tool]));
  }

  test('are structured tools, which give fields when they are invoked', async () => {
    const { sandbox_exec: exec } = byName({ workflow: unique() });
    expect(isLangChainTool(exec)).toBe(true);
    expect(await exec?.invoke({ command: 'echo $((6*7)); exit 3' })).toMatchObject({ exit_code: 3, stdout: '42\n' });
  });

  test('answer the tool calls of a model with tool messages', async () => {
    const tools = langchainTools(manager, { scope: { workflow: unique() } });
    const fake = fakeModel()
      .respondWithTools([{ name: 'sandbox_fs_write', args: { path: 'main.py', content: 'print(6 * 7)' }, id: '1' }])
      .respondWithTools([{ name: 'sandbox_exec', args: { command: 'python main.py' }, id: '2' }])
      .respond((messages) => new AIMessage(JSON.parse(messages.at(-1)?.content as string).stdout));
    const model = fake.bindTools(tools);
    const messages: BaseMessage[] = [new HumanMessage('What is 6 times 7?')];
    for (;;) {
      const message = await model.invoke(messages);
      messages.push(message);
      if (!message.tool_calls?.length) break;
      for (const toolCall of message.tool_calls) {
        const tool = tools.find(({ name }) => name === toolCall.name);
        const answer: ToolMessage = await tool?.invoke({ ...toolCall, type: 'tool_call' });
        expect(answer.tool_call_id).toBe(toolCall.id);
        messages.push(answer);
      }
    }
    expect(messages.at(-1)?.content).toBe('42\n');
  });

  test('say what is wrong with an input', async () => {
    const { sandbox_exec: exec } = byName({ workflow: unique() });
    await expect(exec?.invoke({ command: 7 })).rejects.toThrow(/did not match expected schema.*command/s);
  });

  test('end a command when the call is aborted', async () => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope });
    const abort = new AbortController();
    const call = byName(scope).sandbox_exec?.invoke({ command: 'sleep 1007 & sleep 1007' }, { signal: abort.signal });
    await until(async () => (await countProcesses(sandbox, 'sleep 1007')) >= 2);
    abort.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    expect(await countProcesses(sandbox, 'sleep 1007')).toBe(0);
  });
});
