import { SandboxError, SandboxManager } from 'cofferdam';
import { createToolset, type ToolContext } from 'cofferdam/tools';
import { refused } from './toolbox';

const CODE = [
  'sandbox_open',
  'sandbox_exec',
  'sandbox_exec_read',
  'sandbox_exec_wait',
  'sandbox_fs_write',
  'sandbox_fs_read',
  'sandbox_fs_list',
  'sandbox_fs_edit',
  'sandbox_fs_search',
  'sandbox_fs_delete',
  'sandbox_close',
];

/** None of these tests needs an engine: no sandbox is made before a call needs one. */
describe('a set of tools', () => {
  const plain = new SandboxManager();
  const stored = new SandboxManager({ store: { type: 'memory' } });
  afterAll(() => Promise.all([plain.close(), stored.close()]));

  const names = (manager: SandboxManager, context?: ToolContext) =>
    createToolset(manager, context).tools.map(({ name }) => name);

  const mistake = (manager: SandboxManager, context: unknown): SandboxError => {
    try {
      createToolset(manager, context as ToolContext);
    } catch (error) {
      expect(error).toBeInstanceOf(SandboxError);
      expect((error as SandboxError).code).toBe('INVALID_ARGUMENT');
      return error as SandboxError;
    }
    throw new Error('the context was taken');
  };

  test('has the tools of a session by default, and sandbox_run alone in compute mode', () => {
    expect(names(plain)).toEqual(CODE);
    expect(names(plain, { mode: 'code' })).toEqual(CODE);
    expect(names(plain, { mode: 'compute' })).toEqual(['sandbox_run']);
  });

  test('has the tools of the store only where there is a store', () => {
    expect(plain.hasStore).toBe(false);
    expect(stored.hasStore).toBe(true);
    expect(names(stored)).toEqual([
      ...CODE.slice(0, -1),
      'sandbox_stage_file',
      'sandbox_publish_file',
      'sandbox_close',
    ]);
    expect(names(stored, { mode: 'compute' })).toEqual(['sandbox_run']);
  });

  test('has those that are included, in the order that is always the same', () => {
    expect(names(plain, { include: ['sandbox_fs_read', 'sandbox_exec'] })).toEqual(['sandbox_exec', 'sandbox_fs_read']);
    expect(names(plain, { include: [] })).toEqual([]);
  });

  test.each([
    ['a name that is no tool', { include: ['sandbox_fly'] }, 'sandbox_fly'],
    ['a tool of the other mode', { include: ['sandbox_run'] }, 'sandbox_run'],
    ['a tool of a session in compute mode', { mode: 'compute', include: ['sandbox_exec'] }, 'sandbox_exec'],
  ])('refuses to include %s, and says what there is', (_, context: { mode?: string; include: string[] }, name) => {
    const { message } = mistake(plain, context);
    expect(message).toContain(`"${name}"`);
    expect(message).toContain('mode' in context ? 'the tools are sandbox_run' : 'sandbox_fs_write');
  });

  test('says that a tool of the store needs one', () => {
    expect(mistake(plain, { include: ['sandbox_stage_file'] }).message).toContain('the manager has no store');
  });

  test.each([
    ['mode', { mode: 'chat' }],
    ['include', { include: 'sandbox_exec' }],
    ['scope', { scope: 'wf' }],
    ['scope.workflow', { scope: { workflow: 7 } }],
    ['session', { session: 7 }],
    ['maxResultBytes', { maxResultBytes: 10 }],
    ['maxFiles', { maxFiles: -1 }],
    ['commandTimeoutMs', { commandTimeoutMs: 'long' }],
  ])('tells the host of a mistake in %s at once', (field, context) => {
    expect(mistake(plain, context).message).toContain(field);
  });

  test('answers a call of a tool that it does not have with those it has', async () => {
    const tools = createToolset(plain, { include: ['sandbox_exec'] });
    for (const name of ['sandbox_run', 'sandbox_fs_read', '', '__proto__', 'constructor', 'x'.repeat(100_000)]) {
      expect(await refused(tools, name, {})).toMatchObject({
        code: 'INVALID_ARGUMENT',
        hint: 'The tools are: sandbox_exec.',
      });
    }
    expect((await refused(tools, 7 as never, {})).code).toBe('INVALID_ARGUMENT');
  });

  test('answers calls after its end with a failure', async () => {
    const tools = createToolset(plain);
    await tools.close();
    await tools.close();
    expect(await refused(tools, 'sandbox_exec', { command: 'true' })).toMatchObject({ code: 'SANDBOX_CLOSED' });
  });
});
