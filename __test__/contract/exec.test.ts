import { SandboxError } from 'cofferdam';
import { describeWithEngine, IMAGES, testManager } from '../support';

describeWithEngine.each([['debian'], ['alpine']] as const)('exec on the %s class', (name) => {
  const opened = testManager().open({ image: IMAGES[name] });

  test('resolves with the exit code of a command that fails', async () => {
    const result = await (await opened).exec('echo out; echo err >&2; exit 3');
    expect(result).toMatchObject({
      exitCode: 3,
      ok: false,
      signal: null,
      stdout: 'out\n',
      stderr: 'err\n',
      timedOut: false,
    });
    expect(result.execId).toMatch(/^exec_/);
    expect(result.durationMs).toBeGreaterThan(0);
  });
});
