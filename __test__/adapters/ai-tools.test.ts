import { SandboxManager } from 'cofferdam';
import { sandboxTools } from 'cofferdam/ai';
import { countProcesses, describeWithEngine, IMAGES, testManager, unique } from '../support';
import { seenBy } from './program';

interface Seen {
  names: string[];
  text: string;
  execSchema: { type: string; properties: Record<string, unknown> };
  written: unknown;
  agent: unknown;
  stream: { preliminary: boolean; output: { status: string; stdout: string; exit_code?: number } }[];
  wrong: unknown;
  'aborted generate': unknown;
  'aborted stream': unknown;
  approval: { requested: string[]; results: unknown[]; stillThere: boolean; afterwards?: boolean };
}

describeWithEngine.each([
  [7, 'ai'],
  [6, 'ai-6'],
  [5, 'ai-5'],
])('sandboxTools with AI SDK %d', (major, sdk) => {
  let seen: Seen;

  beforeAll(async () => {
    seen = await seenBy<Seen>('ai-tools', sdk, unique());
  });

  test('let a model write a program, run it and read what it printed', () => {
    expect(seen.names).toEqual(expect.arrayContaining(['sandbox_open', 'sandbox_exec', 'sandbox_fs_write']));
    expect(seen.written).toMatchObject({ path: '/workspace/main.py', size_bytes: 12 });
    expect(seen.text).toBe('It printed 42.');
  });

  test('tell the model the schema as it is', () => {
    expect(seen.execSchema).toMatchObject({ type: 'object', properties: { command: {}, timeout_seconds: {} } });
  });

  test('work in an agent, on the same sandbox by its scope', () => {
    expect(seen.agent).toMatchObject({ path: '/workspace/main.py', content: 'print(6 * 7)' });
  });

  test('show what a command prints while it runs, and its result once it is done', () => {
    const running = seen.stream.filter(({ output }) => output.status === 'running');
    expect(running.length).toBeGreaterThanOrEqual(2);
    expect(running.every(({ preliminary }) => preliminary)).toBe(true);
    expect(running[0]?.output.stdout).toBe('line 1\n');
    expect(seen.stream.at(-1)).toMatchObject({
      preliminary: false,
      output: { status: 'completed', exit_code: 0, stdout: 'line 1\nline 2\nline 3\n' },
    });
  });

  test('answer what the model wrote wrong, for it to read', () => {
    expect(seen.wrong).toMatchObject({
      ok: false,
      code: 'INVALID_ARGUMENT',
      error: expect.stringContaining('command'),
    });
  });

  test('leave nothing running when a call is aborted', () => {
    expect(seen['aborted generate']).toEqual({ outcome: 'AbortError', left: '0' });
    expect(seen['aborted stream']).toEqual({ outcome: 'resolved', left: '0' });
  });

  if (major >= 6) {
    test('run what needs approval only when it was given, after a restart too', () => {
      expect(seen.approval.requested).toEqual(['rm main.py']);
      expect(seen.approval.results).toMatchObject([{ exit_code: 0, stdout: 'main.py\n' }]);
      expect(seen.approval).toMatchObject({ stillThere: true, afterwards: false });
    });
  } else {
    test('refuse what needs approval, because this SDK would not ask', () => {
      expect(seen.approval.results).toMatchObject([{ exit_code: 0 }, { ok: false, code: 'POLICY_DENIED' }]);
      expect(seen.approval.stillThere).toBe(true);
    });
  }
});

type Results = AsyncIterable<{ status?: string; stdout?: string; exit_code?: number }>;

describeWithEngine('a command that is called through AI SDK', () => {
  const manager = testManager({ defaults: { image: IMAGES.alpine } });

  function exec(scope: { workflow: string }, command: string): Results {
    const { sandbox_exec: tool } = sandboxTools(manager, { scope });
    return tool?.execute?.({ command }, { toolCallId: '1', messages: [], context: undefined }) as Results;
  }

  test('shows much output in few results, of which each has the end of it and the last has the result', async () => {
    const started = performance.now();
    const seen = [];
    for await (const result of exec({ workflow: unique() }, 'seq 1 300000')) seen.push(result);
    const running = seen.slice(0, -1);
    expect(running.length).toBeLessThanOrEqual((performance.now() - started) / 100 + 1);
    for (const { status, stdout } of running) {
      expect(status).toBe('running');
      expect(stdout?.length).toBeLessThanOrEqual(16 * 1024);
    }
    expect(seen.at(-1)).toMatchObject({
      status: 'completed',
      exit_code: 0,
      stdout: expect.stringMatching(/^1\n.*\n300000\n$/s),
    });
  });

  test('in compute mode has a sandbox of its own, which is gone with its result', async () => {
    const { sandbox_run: tool } = sandboxTools(manager, { mode: 'compute', image: 'python' });
    const input = { code: 'import os; print(6 * 7, os.listdir())' };
    const results = tool?.execute?.(input, { toolCallId: '1', messages: [], context: undefined }) as Results;
    let last: unknown;
    for await (const result of results) last = result;
    expect(last).toMatchObject({ ok: true, exit_code: 0, stdout: expect.stringMatching(/^42 /) });
  });

  test('ends when nobody wants its results any more', async () => {
    const scope = { workflow: unique() };
    for await (const result of exec(scope, 'echo ready; sleep 1010')) {
      expect(result).toEqual({ status: 'running', stdout: 'ready\n', stderr: '' });
      break;
    }
    expect(await countProcesses(await manager.open({ scope }), 'sleep 1010')).toBe(0);
  });
});

describe('sandboxTools', () => {
  test('refuse a name in needsApproval that is no tool of theirs', async () => {
    const manager = new SandboxManager();
    expect(() => sandboxTools(manager, { needsApproval: { sandbox_exce: true } })).toThrow(
      /a name in needsApproval must be one of .*sandbox_exec.*"sandbox_exce"/,
    );
    await manager.close();
  });

  test('let no other name of an input past a rule, and ask nobody about what will be refused', async () => {
    const manager = new SandboxManager();
    const rule = ({ command }: Record<string, unknown>) => /\brm\b/.test(`${command}`);
    const { sandbox_exec: tool } = sandboxTools(manager, { needsApproval: { sandbox_exec: rule } });
    const ask = tool?.needsApproval as (input: unknown) => Promise<boolean>;
    expect(await ask({ command: 'rm -r /' })).toBe(true);
    expect(await ask({ cmd: 'rm -r /' })).toBe(true);
    expect(await ask({ command: ['rm', '-r', '/'] })).toBe(true);
    expect(await ask({ command: 'ls' })).toBe(false);
    expect(await ask({ command: 7, cmd: 'rm -r /' })).toBe(false);
    await manager.close();
  });

  test('are those of the mode, or the ones that were asked for', async () => {
    const manager = new SandboxManager();
    expect(Object.keys(sandboxTools(manager, { mode: 'compute' }))).toEqual(['sandbox_run']);
    expect(Object.keys(sandboxTools(manager, { include: ['sandbox_exec'] }))).toEqual(['sandbox_exec']);
    await manager.close();
  });
});
