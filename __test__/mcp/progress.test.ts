import { OutputProgress, type Progress } from '../../ts/mcp/progress';

const stdout = (text: string) => ({ stream: 'stdout', text }) as const;

/** Time is the test's own: what is stated here is about when something is sent, and when not. */
describe('progress of a command', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  function listening(send: (step: Progress) => Promise<void> = async () => {}) {
    const steps: Progress[] = [];
    const progress = new OutputProgress((step) => {
      steps.push(step);
      return send(step);
    });
    return { steps, progress };
  }

  test('says that a silent command is alive, before clients give up on it', async () => {
    const { steps, progress } = listening();
    await jest.advanceTimersByTimeAsync(59_000);
    expect(steps.map(({ message }) => message)).toEqual([10, 20, 30, 40, 50].map((at) => `running for ${at} s`));
    await progress.end();
    await jest.advanceTimersByTimeAsync(60_000);
    expect(steps).toHaveLength(5);
  });

  test('tells chatty output in a few pieces, all of it and in order', async () => {
    const { steps, progress } = listening();
    for (let line = 0; line < 1000; line += 1) {
      progress.onOutput(stdout(`${line}\n`));
      await jest.advanceTimersByTimeAsync(1);
    }
    await progress.end();
    expect(steps.length).toBeLessThanOrEqual(12);
    const all = Array.from({ length: 1000 }, (_, line) => `${line}\n`).join('');
    expect(steps.map(({ message }) => message).join('')).toBe(all);
  });

  test('does not pile up for a client that reads slowly: it gets the newest, and hears how much it missed', async () => {
    let read = () => {};
    const { steps, progress } = listening(
      () =>
        new Promise((resolve) => {
          read = resolve;
        }),
    );
    progress.onOutput(stdout('first\n'));
    await jest.advanceTimersByTimeAsync(100);
    for (let piece = 0; piece < 1000; piece += 1) progress.onOutput(stdout('😀'.repeat(500)));
    await jest.advanceTimersByTimeAsync(100_000);
    expect(steps).toHaveLength(1);
    read();
    await jest.advanceTimersByTimeAsync(100);
    expect(steps).toHaveLength(2);
    const { message = '' } = steps[1] ?? {};
    expect(message.isWellFormed()).toBe(true);
    const [, omitted] = /^\[… (\d+) characters left out …\]\n/.exec(message) ?? [];
    expect(Number(omitted) + message.length - message.indexOf('\n') - 1).toBe(1000 * 1000);
    expect(message.length).toBeLessThan(17_000);
  });

  test('ends telling after a few million characters, and goes on counting', async () => {
    const { steps, progress } = listening();
    for (let piece = 0; piece < 1000; piece += 1) {
      progress.onOutput(stdout('x'.repeat(16_000)));
      await jest.advanceTimersByTimeAsync(100);
    }
    const told = steps.reduce((sum, { message }) => sum + message.length, 0);
    expect(told).toBeLessThan(4_300_000);
    expect(steps.at(-1)?.message).toMatch(/^\[… \d+ characters left out …\]\nrunning for \d+ s$/);
  });

  test('is over when the client is gone', async () => {
    const { steps, progress } = listening(async () => {
      throw new Error('gone');
    });
    progress.onOutput(stdout('x'));
    await progress.end();
    expect(steps).toHaveLength(1);
  });
});
