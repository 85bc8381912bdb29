import type { Logger } from 'cofferdam';
import Docker from 'dockerode';
import { describeWithEngine, IMAGES, program, testManager, unique, until } from '../support';

const image = IMAGES.alpine;

type Line = [level: string, message: string, fields: Record<string, unknown>];

/** A logger that keeps its lines. */
function book() {
  const lines: Line[] = [];
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => {
    lines.push([level, message, fields]);
  };
  const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } satisfies Logger;
  return { lines, logger, find: (message: string) => until(() => lines.find((line) => line[1] === message)) };
}

describeWithEngine('a logger', () => {
  test('hears of a run under one correlation id', async () => {
    const { lines, logger } = book();
    const manager = testManager({ logger });
    await manager.run({ runtime: 'bash', code: 'printf hush; exit 4' });
    await expect(manager.run({ runtime: 'bash', code: 'true', image: 'localhost:1/no:1' })).rejects.toThrow();
    const runs = lines.filter(([, message]) => message.startsWith('sandbox_run'));
    const [id, other] = [runs[0]?.[2].run_id, runs[2]?.[2].run_id];
    expect(runs).toEqual([
      ['info', 'sandbox_run_started', { run_id: id, runtime: 'bash', image: 'bash' }],
      [
        'info',
        'sandbox_run_finished',
        {
          run_id: id,
          runtime: 'bash',
          image: IMAGES.debian,
          duration_ms: expect.any(Number),
          ok: false,
          exit_code: 4,
          timed_out: false,
          stdout_bytes: 4,
          stderr_bytes: 0,
          artifacts_count: 0,
        },
      ],
      ['info', 'sandbox_run_started', { run_id: other, runtime: 'bash', image: 'localhost:1/no:1' }],
      [
        'error',
        'sandbox_run_failed',
        {
          run_id: other,
          runtime: 'bash',
          image: 'localhost:1/no:1',
          duration_ms: expect.any(Number),
          code: 'IMAGE_NOT_FOUND',
        },
      ],
    ]);
    expect(id).toMatch(/^run_[0-9a-f]{16}$/);
    expect(other).not.toBe(id);
    await manager.close();
    expect(JSON.stringify(lines)).not.toContain('hush');
  });

  test('hears of a session from its opening to its end, and of its commands', async () => {
    const { lines, logger, find } = book();
    const manager = testManager({ defaults: { image }, logger });
    const scope = { workflow: unique() };
    const sandbox = await manager.open({ scope });
    await manager.open({ scope });
    const { execId } = await sandbox.exec('echo hush; exit 3');
    await find('sandbox_exec_finished');
    await sandbox.close();
    await find('sandbox_closed');
    const about = { sandbox_id: sandbox.id, key: sandbox.key, at: expect.any(Date) };
    expect(lines).toMatchObject([
      ['info', 'sandbox_opened', { ...about, image }],
      ['info', 'sandbox_resumed', about],
      ['debug', 'sandbox_exec_started', { ...about, exec_id: execId }],
      ['debug', 'sandbox_exec_finished', { ...about, exec_id: execId, exit_code: 3, timed_out: false }],
      ['info', 'sandbox_closed', { ...about, reason: 'closed' }],
    ]);
    expect(JSON.stringify(lines)).not.toContain('hush');
  });

  test('is warned of a sandbox that was lost', async () => {
    const { logger, find } = book();
    const sandbox = await testManager({ defaults: { image }, logger }).open();
    const docker = new Docker();
    const [found] = await docker.listContainers({ filters: { label: [`cofferdam.id=${sandbox.id}`] } });
    await docker.getContainer(found?.Id ?? '').kill();
    expect(await find('sandbox_lost')).toMatchObject([
      'warn',
      'sandbox_lost',
      { sandbox_id: sandbox.id, reason: 'exited' },
    ]);
  });

  test('is warned of a warm pool that cannot be filled, and why', async () => {
    const { logger, find } = book();
    testManager({ defaults: { pull: 'never' }, warm: { 'cofferdam/no-such-image:1': 1 }, logger });
    expect(await find('sandbox_warm_failed')).toMatchObject([
      'warn',
      'sandbox_warm_failed',
      { image: 'cofferdam/no-such-image:1', code: 'IMAGE_NOT_FOUND', error: expect.stringContaining('no-such-image') },
    ]);
  });

  test('that throws breaks nothing', async () => {
    let calls = 0;
    const fail = () => {
      calls += 1;
      throw new Error('the log is full');
    };
    const manager = testManager({ defaults: { image }, logger: { debug: fail, info: fail, warn: fail, error: fail } });
    const sandbox = await manager.open();
    expect((await sandbox.exec('echo fine')).stdout).toBe('fine\n');
    await until(() => calls >= 2);
    await manager.close();
  });

  test('may have some of the methods only, and is told under its own this', async () => {
    class Counting {
      seen: string[] = [];
      info(_: unknown, message: string) {
        this.seen.push(message);
      }
    }
    const logger = new Counting();
    await testManager({ defaults: { image }, logger }).open();
    await until(() => logger.seen.includes('sandbox_opened'));
    testManager({ logger: console });
    expect(() => testManager({ logger: { warn: 5 as never } })).toThrow('logger.warn must be a function');
  });

  test('does not keep a program alive that has nothing left to do', async () => {
    const body = `
      const logger = { info: (fields, message) => console.log(message) };
      const manager = new SandboxManager({ defaults: { image: ${JSON.stringify(image)} }, logger });
      await manager.open();`;
    const withLogger = program(body);
    const without = program(body.replace(', logger }', ' }'));
    try {
      expect((await without.ended).code).toBe(0);
      expect(await withLogger.ended).toMatchObject({ code: 0 });
    } finally {
      withLogger.child.kill();
    }
  });
});
