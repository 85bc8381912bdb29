import { SandboxManager } from 'cofferdam';
import { parseSandboxConfig, toToolContext } from 'cofferdam/frontmatter';
import { createToolset } from 'cofferdam/tools';
import { describeWithEngine, testManager, unique } from '../support';
import { done, tools } from '../tools/toolbox';

describe('toToolContext', () => {
  test('gives compute’s time, output and packages to sandbox_run', () => {
    const config = parseSandboxConfig({
      runtime: 'shell',
      timeout_seconds: 30,
      max_stdout_bytes: 5000,
      pip_packages: ['pandas'],
      allow_network: true,
      limits: { memory_mb: 256, max_files: 3, max_file_size_bytes: 10 },
    });
    expect(toToolContext(config)).toEqual({
      mode: 'compute',
      runtime: 'bash',
      commandTimeoutMs: 30_000,
      maxResultBytes: 5000,
      packages: { pip: ['pandas'] },
      network: true,
      limits: { memoryMb: 256 },
      maxFiles: 3,
      maxFileBytes: 10,
    });
  });

  test('gives code’s runtime as the image, unless another is named', () => {
    expect(toToolContext(parseSandboxConfig('mode: code'))).toEqual({
      mode: 'code',
      image: 'linux',
      limits: {},
      network: false,
    });
    expect(toToolContext(parseSandboxConfig({ mode: 'code', runtime: 'golang:1.22' })).image).toBe('golang:1.22');
    expect(toToolContext(parseSandboxConfig({ mode: 'code', runtime: 'python', image: 'mine:1' })).image).toBe(
      'mine:1',
    );
  });

  test('lets the host have the last word, where it has one', () => {
    const config = parseSandboxConfig({ mode: 'code', session: 'build', allow_network: true });
    const host = { scope: { workflow: 'wf' }, network: false, image: undefined, include: ['sandbox_exec'] };
    expect(toToolContext(config, host)).toEqual({
      mode: 'code',
      image: 'linux',
      session: 'build',
      scope: { workflow: 'wf' },
      network: false,
      limits: {},
      include: ['sandbox_exec'],
    });
  });

  test('keeps a session to the agent run where that is asked for', () => {
    const scope = { workflow: 'wf', agent: 'run_1' };
    const of = (session: string, host = {}) => toToolContext(parseSandboxConfig({ mode: 'code', session }), host);
    expect(of('agent', { scope }).scope).toEqual({ agent: 'run_1' });
    expect(of('workflow', { scope })).toMatchObject({ scope });
    expect(of('default', { scope })).toEqual(of('workflow', { scope }));
    expect(of('isolated', { scope })).toMatchObject({ scope, session: 'isolated' });
    expect(() => of('agent', { scope: { workflow: 'wf' } })).toThrow('scope.agent');
  });

  test.each([
    ['python', ['sandbox_run']],
    ['---\nsandbox:\n  mode: compute\n---\n', ['sandbox_run']],
    ['mode: code', undefined],
  ])('of %j gives the tools of its mode without glue', async (source, names) => {
    await using manager = new SandboxManager();
    const { tools } = createToolset(manager, toToolContext(parseSandboxConfig(source)));
    expect(tools.map(({ name }) => name)).toEqual(names ?? expect.arrayContaining(['sandbox_open', 'sandbox_exec']));
    expect(tools.some(({ name }) => name === 'sandbox_run')).toBe(names !== undefined);
  });
});

describeWithEngine('a prompt file', () => {
  const manager = testManager();

  test('in compute mode runs programs as it says', async () => {
    const prompt = '---\nsandbox:\n  runtime: node\n  timeout_seconds: 7\n  max_stdout_bytes: 1000\n---\nYou are…';
    const own = tools(manager, { image: undefined, ...toToolContext(parseSandboxConfig(prompt)) });
    const result = await done(own, 'sandbox_run', { code: 'console.log("x".repeat(5000))' });
    expect(result).toMatchObject({
      runtime: 'node',
      truncated: true,
      limits: { timeout_seconds: 7, max_stdout_bytes: 1000 },
    });
    expect((result.stdout as string).length).toBeLessThanOrEqual(1000);
  });

  test('in code mode shares the workflow’s session, or keeps its own', async () => {
    const scope = { workflow: unique(), agent: unique('agent') };
    const open = async (session: string) => {
      const prompt = `---\nsandbox:\n  mode: code\n  runtime: linux\n  session: ${session}\n  limits:\n    timeout_seconds: 120\n---\n`;
      return done(tools(manager, toToolContext(parseSandboxConfig(prompt), { scope })), 'sandbox_open');
    };
    const [first, second, alone, agents] = [
      await open('default'),
      await open('workflow'),
      await open('isolated'),
      await open('agent'),
    ];
    expect(first).toMatchObject({
      session_id: `workflow:${scope.workflow}:default`,
      image: 'ubuntu:22.04',
      created: true,
    });
    expect(second).toMatchObject({ sandbox_id: first.sandbox_id, created: false });
    expect(alone.sandbox_id).not.toBe(first.sandbox_id);
    expect(agents).toMatchObject({ session_id: `agent:${scope.agent}:default`, created: true });
    const { expiresAt } = await (await manager.get(first.sandbox_id as string)).info();
    expect((expiresAt as Date).getTime() - Date.now()).toBeLessThanOrEqual(125_000);
    await manager.endScope({ workflow: scope.workflow });
    await manager.endScope({ agent: scope.agent });
  });
});
