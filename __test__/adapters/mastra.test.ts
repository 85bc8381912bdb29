import { mastraTools } from 'cofferdam/tools';
import { countProcesses, describeWithEngine, testManager, unique, until } from '../support';
import { seenBy } from './program';

/** What Mastra hands over when nobody observes. */
const context = { observe: { span: async <T>(_name: string, work: () => T | Promise<T>) => work(), log() {} } };

describeWithEngine('mastraTools with @mastra/core', () => {
  const manager = testManager({ defaults: { image: 'python' } });

  test('are Mastra’s own tools, which give fields when they are executed', async () => {
    const { sandbox_exec: exec } = mastraTools(manager, { scope: { workflow: unique() } });
    expect(exec?.id).toBe('sandbox_exec');
    expect(await exec?.execute?.({ command: 'echo $((6*7)); exit 3' }, context)).toMatchObject({
      exit_code: 3,
      stdout: '42\n',
    });
    expect(await exec?.execute?.({ command: 7 }, context)).toMatchObject({
      error: true,
      message: expect.stringContaining('command'),
    });
  });

  test('let an agent write a program, run it and say what it printed', async () => {
    const { text, asked } = await seenBy<{ text: string; asked: string[] }>('mastra-agent', unique());
    expect(text).toBe('It printed 42.');
    expect(asked).toEqual(['sandbox_fs_write', 'sandbox_exec']);
  });

  test('end a command when the call is aborted', async () => {
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope });
    const abort = new AbortController();
    const exec = mastraTools(manager, { scope }).sandbox_exec;
    const call = exec?.execute?.({ command: 'sleep 1009 & sleep 1009' }, { ...context, abortSignal: abort.signal });
    await until(async () => (await countProcesses(sandbox, 'sleep 1009')) >= 2);
    abort.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    expect(await countProcesses(sandbox, 'sleep 1009')).toBe(0);
  });
});
