/** What `cofferdam shell` knows of terminals, without one. */
import { DetachKeys, keysFrom } from '../../ts/cli/terminal/detach-keys';
import { TerminalModes } from '../../ts/cli/terminal/modes';

/** What puts a terminal back after `output`, in whatever pieces that came. */
function restored(output: string): string {
  const answers = new Set<string>();
  const bytes = Buffer.from(output);
  for (let cut = 0; cut <= bytes.length; cut += 1) {
    const modes = new TerminalModes();
    modes.take(bytes.subarray(0, cut));
    modes.take(bytes.subarray(cut));
    answers.add(modes.restore());
  }
  expect(answers.size).toBe(1);
  return [...answers][0] ?? '';
}

describe('the modes of a terminal', () => {
  test.each([
    ['plain text – 大きい', ''],
    ['an editor that left well', '\x1b[?1049h\x1b[?25l\x1b[31mred\x1b[0m\x1b[?25h\x1b[?1049l'],
    ['a prompt in colours', '\x1b[1;32muser\x1b[m$ \x1b[?2004h\x1b[?2004l'],
    ['a title, in both ways', '\x1b]0;title [?25l\x07\x1b]2;title\x1b\\'],
    ['modes that nobody suffers from', '\x1b[?12h\x1b[4h'],
    ['a full reset', '\x1b[?1049h\x1b[?1000h\x1b=\x1bc'],
    ['a keyboard that was pushed and popped', '\x1b[>1u\x1b[>3u\x1b[<2u'],
    ['a sequence that was cancelled', '\x1b[?25\x18l'],
  ])('after %s, nothing is to be done', (_, output) => {
    expect(restored(output)).toBe('');
  });

  test.each([
    ['the alternate screen and no cursor', '\x1b[?1049h\x1b[?25l', '\x1b[?25h\x1b[?1049l'],
    ['the mouse and paste, in one sequence', '\x1b[?1002;1006;2004h', '\x1b[?1002l\x1b[?1006l\x1b[?2004l'],
    ['keys of an application', '\x1b[?1h\x1b=', '\x1b>\x1b[?1l'],
    ['no wrapping', '\x1b[?7l', '\x1b[?7h'],
    ['colours', '\x1b[0m\x1b[1;31m', '\x1b[0m'],
    ['a region that scrolls', '\x1b[3;9r', '\x1b7\x1b[r\x1b8'],
    ['lines for letters', '\x1b(0', '\x1b(B'],
    ['another cursor', '\x1b[5 q', '\x1b[0 q'],
    ['keyboards', '\x1b[>1u\x1b[>4;2m', '\x1b[<1u\x1b[>4m'],
    ['half a title', '\x1b]0;half', '\x1b\\'],
    ['half a sequence', '\x1b[?10', '\x18'],
    ['a soft reset, which leaves the mouse', '\x1b[?1000h\x1b[?25l\x1b[!p', '\x1b[?1000l'],
  ])('%s is put back', (_, output, undo) => {
    expect(restored(output)).toBe(undo);
  });
});

describe('the keys that detach', () => {
  function typing(sequence: string) {
    const passed: string[] = [];
    let detached = 0;
    const keys = new DetachKeys(keysFrom('--detach-keys', sequence), {
      pass: (bytes) => passed.push(bytes.toString()),
      detach: () => {
        detached += 1;
      },
    });
    return {
      type: (...pieces: string[]) => {
        for (const piece of pieces) keys.take(Buffer.from(piece));
        return { passed: passed.join(''), detached };
      },
    };
  }

  test('are found whether they come as one or one by one', () => {
    expect(typing('ctrl-],d').type('a', '\x1d', 'd')).toEqual({ passed: 'a', detached: 1 });
    expect(typing('ctrl-],d').type('\x1dd')).toEqual({ passed: '', detached: 1 });
    expect(typing('ctrl-p,ctrl-q').type('\x10\x11')).toEqual({ passed: '', detached: 1 });
    expect(typing('ctrl-],d').type('\x1d', '\x1d', 'd')).toEqual({ passed: '\x1d', detached: 1 });
  });

  test('are no keys to detach within a paste, when others come between, or when there are none', () => {
    expect(typing('ctrl-],d').type('a\x1dd')).toEqual({ passed: 'a\x1dd', detached: 0 });
    expect(typing('ctrl-],d').type('\x1d', 'x', 'd')).toEqual({ passed: '\x1dxd', detached: 0 });
    expect(typing('none').type('\x1d', 'd', '')).toEqual({ passed: '\x1dd', detached: 0 });
  });

  test('the first alone is but a key, a second later', () => {
    jest.useFakeTimers();
    const { type } = typing('ctrl-],d');
    expect(type('\x1d').passed).toBe('');
    jest.advanceTimersByTime(1_000);
    expect(type('d')).toEqual({ passed: '\x1dd', detached: 0 });
    jest.useRealTimers();
  });

  test.each(['', 'ctrl-', 'ctrl-ä', 'alt-x', 'ctrl-],'])('%j is refused', (keys) => {
    expect(() => keysFrom('--detach-keys', keys)).toThrow(/--detach-keys must be keys as in ctrl-],d, or none/);
  });
});
