import { clip, columnsOf, ellipsized, padded } from '../../ts/cli/columns';
import { table } from '../../ts/cli/print';

describe('columns of a terminal', () => {
  test.each([
    ['plain text', 'abc', 3],
    ['Chinese, Japanese and Korean', '日本語한글', 10],
    ['a combining accent', 'e\u0301', 1],
    ['an emoji', '👍', 2],
    ['blocks of a bar', '█░', 2],
    ['half-width kana', 'ｱ', 1],
    ['colours', '\x1b[31mred\x1b[0m', 3],
    ['nothing', '', 0],
  ])('%s', (_, text, columns) => expect(columnsOf(text)).toBe(columns));

  test.each([
    ['abcdef', 4, 'abcd'],
    ['日本語', 5, '日本'],
    ['日本語x', 3, '日'],
    ['👍👍', 2, '👍'],
    ['e\u0301e\u0301', 1, 'e\u0301'],
    ['\x1b[31mlong red\x1b[0m and more', 4, '\x1b[31mlong\x1b[0m'],
    ['short', 80, 'short'],
    ['none', 0, ''],
  ])('clip %j to %d columns', (text, columns, clipped) => expect(clip(text, columns)).toBe(clipped));

  test('are filled up, and shortened with a mark', () => {
    expect(padded('日本', 6)).toBe('日本  ');
    expect(padded('longer', 3)).toBe('longer');
    expect(ellipsized('日本語', 5)).toBe('日本…');
    expect(ellipsized('日本語', 6)).toBe('日本語');
  });

  test('line up in tables', () => {
    const lines = table(
      ['NAME', 'KEY'],
      [
        ['日本', 'a'],
        ['plain', 'b'],
      ],
    ).split('\n');
    expect(lines).toEqual(['NAME   KEY', '日本   a', 'plain  b']);
  });
});
