/**
 * How often a call of a tool asks the guest, counted below the public classes by the recorder. That `execStreaming` is one
 * request on the wire, with all its `nextMany` and its `result`, crates/core/tests/streaming.rs shows.
 */
import { sandboxTools } from 'cofferdam/ai';
import { createFakeManager, recordManager } from 'cofferdam/testing';
import { describeWithEngine, testManager, unique } from '../support';
import { done, refused, tools } from './toolbox';

describeWithEngine('a call on a known sandbox', () => {
  const { manager, script } = recordManager(testManager());
  const own = tools(manager);

  /** The native calls that `work` makes, each name once. */
  async function asked(work: () => Promise<unknown>): Promise<string[]> {
    const before = script().calls.length;
    await work();
    const methods = script()
      .calls.slice(before)
      .map(({ method }) => method);
    return [...new Set(methods)];
  }

  beforeAll(() => done(own, 'sandbox_fs_write', { path: 'there.txt', content: 'x' }));

  test.each([
    ['sandbox_exec', { command: 'echo x' }, ['exec']],
    ['sandbox_exec', { command: 'true', stream: true }, ['spawn', 'end']],
    ['sandbox_fs_write', { path: 'a', content: 'x' }, ['writeFile']],
    ['sandbox_fs_edit', { path: 'a', old_text: 'x', new_text: 'y' }, ['replace']],
    ['sandbox_fs_list', {}, ['list']],
    ['sandbox_fs_search', { glob: '*' }, ['glob']],
    ['sandbox_fs_search', { pattern: 'x' }, ['grep']],
    // Both at once, as above: nothing waits for the end of the input.
    ['sandbox_fs_read', { path: 'there.txt' }, ['stat', 'readFile']],
  ])('of %s with %j asks the guest once', async (name, input, methods) => {
    expect(await asked(() => done(own, name, input))).toEqual(methods);
  });

  test('of sandbox_exec asks the guest once also where its output is shown while it runs', async () => {
    const heard: string[] = [];
    const run = () =>
      own.call('sandbox_exec', { command: 'echo x' }, { onOutput: ({ text }) => void heard.push(text) });
    expect(await asked(run)).toEqual(['execStreaming', 'nextMany', 'result']);
    expect(heard).toEqual(['x\n']);
  });

  test('of sandbox_exec over AI SDK asks the guest once', async () => {
    const { sandbox_exec } = sandboxTools(manager, { image: 'linux', scope: { workflow: unique() } });
    const execute = sandbox_exec?.execute as (input: object, options: object) => AsyncIterable<Record<string, unknown>>;
    const run = async () => {
      const results: Record<string, unknown>[] = [];
      for await (const result of execute({ command: 'echo x; exit 3' }, {})) results.push(result);
      expect(results.at(-1)).toMatchObject({ status: 'completed', exit_code: 3, stdout: 'x\n' });
    };
    await run();
    expect(await asked(run)).toEqual(['execStreaming', 'nextMany', 'result']);
  });
});

describe('a call on a sandbox that is gone', () => {
  const scope = { workflow: 'wf' };

  test('is made once, in a new sandbox, and says so', async () => {
    const manager = createFakeManager({ exec: [{ command: 'work', stdout: 'done\n' }] });
    const own = tools(manager, { scope });
    await done(own, 'sandbox_fs_write', { path: 'kept.txt', content: 'x' });
    await manager.endScope(scope);
    const results = await Promise.all([
      done(own, 'sandbox_exec', { command: 'work' }),
      done(own, 'sandbox_exec', { command: 'work' }),
      done(own, 'sandbox_fs_list'),
    ]);
    for (const result of results) {
      expect(result).toMatchObject({ created: true, note: expect.stringContaining('this is a new one') });
    }
    expect(manager.calls.filter(({ name }) => name === 'open')).toHaveLength(2);
    expect(await done(own, 'sandbox_exec', { command: 'work' })).not.toHaveProperty('note');
    await manager.close();
  });

  test.each([['quietly'], ['streaming']])('while its command runs, %s, is not made again', async (how) => {
    const ending = async () => {
      // Once it has begun.
      await new Promise(setImmediate);
      await manager.endScope(scope);
      return {};
    };
    const manager = createFakeManager({
      exec: [
        { command: 'charge', answer: ending },
        { command: 'look', stdout: 'x' },
      ],
    });
    const own = tools(manager, { scope });
    await done(own, 'sandbox_open');
    const onOutput = how === 'streaming' ? () => {} : undefined;
    const lost = await own.call('sandbox_exec', { command: 'charge' }, { onOutput });
    expect(lost).toMatchObject({ ok: false, code: 'SANDBOX_CLOSED', hint: expect.stringContaining('next call') });
    expect(manager.calls.filter(({ input }) => input.command === 'charge')).toHaveLength(1);
    expect(await done(own, 'sandbox_exec', { command: 'look' })).toMatchObject({
      stdout: 'x',
      note: expect.stringContaining('this is a new one'),
    });
    await manager.close();
  });

  test('is answered as before where a command is asked for that went with it', async () => {
    const manager = createFakeManager({ exec: [{ command: 'serve', delayMs: Infinity }] });
    const own = tools(manager, { scope });
    const { exec_id } = await done(own, 'sandbox_exec', { command: 'serve', stream: true });
    await manager.endScope(scope);
    expect(await refused(own, 'sandbox_exec_wait', { exec_id })).toMatchObject({ code: 'PROCESS_NOT_FOUND' });
    expect(await done(own, 'sandbox_close')).toMatchObject({ closed: false });
    await manager.close();
  });
});
