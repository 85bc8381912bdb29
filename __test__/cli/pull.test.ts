import { PullDisplay } from '../../ts/cli/pull-display';
import type { Screen } from '../../ts/cli/screen';
import { describeWithRegistry, Registry } from '../registry';
import { describeOnDocker } from '../support';
import { cofferdam, scope, shell } from './program';

/** Keeps what is written, and shows what a terminal of this size would show. */
class Terminal implements Screen {
  readonly isTTY = true;
  text = '';
  constructor(
    readonly columns: number,
    readonly rows: number,
  ) {}

  write(text: string): void {
    this.text += text;
  }

  /** Only what the display uses: lines, up, back to the left, and clear from here. */
  lines(): string[] {
    const shown: string[] = [''];
    let row = 0;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are made of them.
    for (const [piece, up] of this.text.matchAll(/\x1b\[(\d+)A|\x1b\[J|\r|\n|[^\x1b\r\n]+/g)) {
      if (up !== undefined) row = Math.max(0, row - Number(up));
      else if (piece === '\x1b[J') shown.splice(row, Number.POSITIVE_INFINITY, '');
      else if (piece === '\n') shown[++row] ??= '';
      else if (piece !== '\r') shown[row] += piece;
    }
    return shown;
  }
}

describe('the bars of a pull', () => {
  const image = 'python:3.11-slim';
  const MiB = 1024 * 1024;

  test('a line per layer, redrawn in place, and a total', () => {
    const terminal = new Terminal(100, 30);
    const display = new PullDisplay(terminal);
    display.show({ image, layer: 'aaaa', status: 'Pulling fs layer' });
    display.show({ image, layer: 'bbbb', status: 'Already exists' });
    display.show({ image, layer: 'aaaa', status: 'Downloading', currentBytes: 1 * MiB, totalBytes: 4 * MiB });
    expect(terminal.lines()).toEqual([
      'aaaa          Downloading        [██████░░░░░░░░░░░░░░░░░░] 1.0 MiB of 4.0 MiB',
      'bbbb          Already exists    ',
      '1 of 2 layers, 1.0 MiB of 4.0 MiB',
      '',
    ]);
    display.show({ image, layer: 'aaaa', status: 'Pull complete' });
    display.finish();
    expect(terminal.lines().slice(2)).toEqual(['2 of 2 layers, 4.0 MiB of 4.0 MiB', '']);
  });

  test('never more lines than the screen has, nor wider ones', () => {
    const terminal = new Terminal(40, 8);
    const display = new PullDisplay(terminal);
    for (let layer = 0; layer < 40; layer += 1) {
      display.show({ image, layer: `layer${layer}`, status: 'Downloading', currentBytes: 1, totalBytes: 3 * MiB });
    }
    display.finish();
    const lines = terminal.lines();
    expect(lines.length).toBeLessThanOrEqual(8);
    for (const line of lines) expect(line.length).toBeLessThan(40);
  });

  test('in a pipe, a line for each change of status', () => {
    let text = '';
    const display = new PullDisplay({ write: (piece: string) => (text += piece) });
    display.show({ image, layer: '3.11-slim', status: 'Pulling from library/python' });
    for (const currentBytes of [1, 2, 3]) {
      display.show({ image, layer: 'aaaa', status: 'Downloading', currentBytes, totalBytes: 3 });
    }
    display.show({ image, layer: 'aaaa', status: 'Pull complete' });
    display.finish();
    expect(text).toBe('Pulling from library/python\naaaa: Downloading\naaaa: Pull complete\n');
  });
});

describeOnDocker('cofferdam pull', () => {
  test('says what is wrong in words', async () => {
    const missing = await cofferdam(['pull', '127.0.0.1:1/nobody/has-this:1']);
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    expect(missing.stderr).toMatch(/has-this/);
    expect(missing.stderr).not.toMatch(/^ +at /m);
    expect(await cofferdam(['pull'])).toMatchObject({ code: 2, stderr: expect.stringContaining('<image> is missing') });
  });
});

describeWithRegistry('cofferdam pull, from a registry', () => {
  let registry: Registry;
  let image: string;

  beforeAll(async () => {
    registry = await Registry.start();
    image = registry.image;
  });

  beforeEach(() => registry.forget());

  afterAll(() => registry.stop());

  test('prints the image alone, and what happens on standard error', async () => {
    const ended = await cofferdam(['pull', image]);
    expect(ended).toMatchObject({ code: 0, stdout: `${image}\n` });
    expect(ended.stderr).toMatch(/^Pulling from team\/pulled\n(\w+: .+\n)+Digest: .*\nStatus: .*\n$/);
    expect(ended.stderr).not.toContain('\x1b');
    await registry.forget();
    expect(await cofferdam(['pull', '-q', image])).toMatchObject({ code: 0, stdout: `${image}\n`, stderr: '' });
  });

  test('--json gives a line for each step', async () => {
    const { code, stdout, stderr } = await cofferdam(['pull', '--json', image]);
    const steps = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(steps.length).toBeGreaterThan(1);
    for (const step of steps) expect(step).toMatchObject({ image, status: expect.any(String) });
  });

  test('bars on a terminal, of pull and of open', async () => {
    const onTerminal = (line: string) =>
      shell(`TERM=xterm script -qec "stty cols 100 rows 30; $(declare -f cofferdam); cofferdam ${line}" /dev/null`);
    const pulled = await onTerminal(`pull ${image}`);
    expect(pulled.code).toBe(0);
    expect(pulled.output).toContain('\x1b[3A');
    expect(pulled.output).toMatch(/2 of 2 layers, 7\.6 MiB of 7\.6 MiB/);
    expect(pulled.output.trimEnd().endsWith(image)).toBe(true);
    await registry.forget();
    const words = scope().words.join(' ');
    const opened = await onTerminal(`open --image ${image} ${words}`);
    // The image can be removed only when nobody uses it.
    await shell(`cofferdam close --all ${words}`);
    expect(opened.output).toMatch(/2 of 2 layers(.|\s)*sbx_\w+\r\n$/);
  });
});
