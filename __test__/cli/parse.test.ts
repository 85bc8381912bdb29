import { type Command, command, UsageError } from '../../ts/cli/command';
import { COMMANDS } from '../../ts/cli/commands';
import { helpOf, overview } from '../../ts/cli/help';
import { asksForHelp, oneOf, pairs, parse, time, wholeNumber } from '../../ts/cli/parse';
import { placeOf } from '../../ts/cli/place';

const example = command({
  name: 'carry',
  summary: 'Carry things',
  operands: [{ name: 'from' }, { name: 'to', optional: true }],
  flags: {
    fast: { type: 'boolean', short: 'f', about: 'Soon' },
    by: { type: 'string', value: 'means', about: 'How', group: 'Means' },
    tag: { type: 'string', short: 't', multiple: true, about: 'What for' },
  },
  examples: [{ line: 'cofferdam carry a b', about: 'From a to b' }],
  run: async () => 0,
});

const withTail = command({ ...example, operands: [{ name: 'where' }], tail: { name: 'program', many: true } });
const many = command({ ...example, operands: [{ name: 'from', many: true }, { name: 'to' }] });

describe('the words of a command line', () => {
  test.each([
    [['a'], { flags: {}, operands: ['a'], tail: [] }],
    [['a', '-f', 'b', '--by', 'cart'], { flags: { fast: true, by: 'cart' }, operands: ['a', 'b'], tail: [] }],
    [['-t', 'x', '--tag=y', 'a'], { flags: { tag: ['x', 'y'] }, operands: ['a'], tail: [] }],
    [['a', '--', '--by'], { flags: {}, operands: ['a', '--by'], tail: [] }],
  ])('%j', (words, expected) => {
    expect(parse(example, words)).toEqual(expected);
  });

  test.each([
    [['here', 'ls', '-f', '--by'], { flags: {}, operands: ['here'], tail: ['ls', '-f', '--by'] }],
    [['-f', 'here', '--', 'ls', '--', 'x'], { flags: { fast: true }, operands: ['here'], tail: ['ls', '--', 'x'] }],
    [['here', '--by', 'cart', 'ls'], { flags: { by: 'cart' }, operands: ['here'], tail: ['ls'] }],
    [['here', '--', '-x'], { flags: {}, operands: ['here'], tail: ['-x'] }],
  ])('%j, where the rest belongs to another program', (words, expected) => {
    expect(parse(withTail, words)).toEqual(expected);
  });

  test('several operands and then one', () => {
    expect(parse(many, ['a', 'b', 'c']).operands).toEqual(['a', 'b', 'c']);
    expect(() => parse(many, ['a'])).toThrow('<to> is missing');
  });

  test.each([
    [example, [], '<from> is missing'],
    [example, ['a', 'b', 'c'], 'unexpected argument "c"'],
    [example, ['a', '--slow'], "Unknown option '--slow'"],
    [example, ['a', '--by'], '--by'],
    [example, ['a', '--fast=yes'], '--fast'],
    [withTail, ['here'], '<program> is missing'],
    [withTail, [], '<where> is missing'],
  ] as [Command, string[], string][])('%# complains of %j', (command, words, message) => {
    expect(() => parse(command, words)).toThrow(message);
    expect(() => parse(command, words)).toThrow(UsageError);
  });

  test('--help is ours before the other program, and its own after', () => {
    expect(asksForHelp(withTail, ['--help'])).toBe(true);
    expect(asksForHelp(withTail, ['here', '-h'])).toBe(true);
    expect(asksForHelp(withTail, ['here', 'ls', '--help'])).toBe(false);
  });
});

describe('values', () => {
  test.each([
    ['500ms', 500],
    ['90s', 90_000],
    ['1.5h', 5_400_000],
    ['7d', 604_800_000],
    ['never', 0],
    ['0', 0],
    [undefined, undefined],
  ])('the time %s', (value, expected) => expect(time('--keep', value)).toBe(expected));

  test.each(['5', 'soon', '-1s', '1w', ''])('%j is no time', (value) => {
    expect(() => time('--keep', value)).toThrow(/--keep must be a time such as/);
  });

  test('numbers, words and pairs', () => {
    expect(wholeNumber('--port', '80')).toBe(80);
    expect(() => wholeNumber('--port', '8.5')).toThrow('--port must be a whole number, not "8.5"');
    expect(oneOf('--mode', ['a', 'b'], 'b')).toBe('b');
    expect(() => oneOf('--mode', ['a', 'b'], 'c')).toThrow('--mode must be a or b, not "c"');
    process.env.COFFERDAM_TEST_PAIR = 'ours';
    expect(pairs('--env', ['A=1', 'B=x=y', 'C=', 'COFFERDAM_TEST_PAIR'])).toEqual({
      A: '1',
      B: 'x=y',
      C: '',
      COFFERDAM_TEST_PAIR: 'ours',
    });
    delete process.env.COFFERDAM_TEST_PAIR;
    expect(() => pairs('--env', ['COFFERDAM_TEST_PAIR'])).toThrow('has no value');
    expect(() => pairs('--env', ['=x'])).toThrow('NAME=value');
  });

  test.each([
    ['-', { kind: 'standard' }],
    ['a/b', { kind: 'host', path: 'a/b' }],
    ['./a:b', { kind: 'host', path: './a:b' }],
    ['/a:b', { kind: 'host', path: '/a:b' }],
    ['default:', { kind: 'sandbox', sandbox: 'default', path: '.' }],
    ['sbx_1:/etc/a:b', { kind: 'sandbox', sandbox: 'sbx_1', path: '/etc/a:b' }],
    ['user:me:build:src', { kind: 'sandbox', sandbox: 'user:me:build', path: 'src' }],
    ['manager:m1:default:a', { kind: 'sandbox', sandbox: 'manager:m1:default', path: 'a' }],
    ['workflow:wf_1:default:/a', { kind: 'sandbox', sandbox: 'workflow:wf_1:default', path: '/a' }],
  ])('the place %s', (word, expected) => expect(placeOf(word)).toEqual(expected));
});

describe('help', () => {
  const listed = COMMANDS.filter(({ hidden }) => !hidden);

  test('is made of the description', () => {
    expect(helpOf(example)).toBe(`Usage: cofferdam carry [options] <from> [<to>]

Carry things.

Options:
  -f, --fast        Soon
  -t, --tag <tag>…  What for
  -h, --help        Show this help

Means:
      --by <means>  How

Example:
  # From a to b
  cofferdam carry a b
`);
  });

  test('breaks what is too long, behind its column', () => {
    const about = 'word '.repeat(40).trim();
    const flags = { by: { type: 'string', about } } as const;
    const text = helpOf(command({ ...example, flags, about: `One\nline.\n\nAnother\none.` }));
    expect(text).toContain('\n\nOne line.\n\nAnother one.\n\n');
    expect(text).toContain(`      --by <by>  ${'word '.repeat(20).trim()}\n${' '.repeat(17)}word`);
  });

  test('lists every command but those for programs', () => {
    const text = overview(COMMANDS);
    for (const { name, summary } of listed) expect(text).toMatch(new RegExp(`^  ${name} +${literally(summary)}$`, 'm'));
    expect(text).not.toContain('__complete');
  });

  test.each(listed.map((command) => [command.name, command] as const))('%s: every example parses', (_, command) => {
    expect(command.examples.length).toBeGreaterThan(0);
    for (const { line } of command.examples) {
      const [name, ...words] = ownWords(line);
      expect(name).toBe(command.name);
      parse(command, words);
    }
  });

  test.each(listed.map((command) => [command.name, command] as const))(
    '%s: no two flags share a letter',
    (_, command) => {
      const letters = Object.values(command.flags).flatMap(({ short }) => (short === undefined ? [] : [short]));
      expect(new Set(letters).size).toBe(letters.length);
      expect(letters).not.toContain('h');
    },
  );

  test.each(listed.map((command) => [command.name, command] as const))('%s fits on a screen', (_, command) => {
    for (const line of helpOf(command).split('\n')) expect(line.length).toBeLessThanOrEqual(120);
  });
});

function literally(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** The words of our program in a line for a shell: after its name, up to a pipe or a bracket. */
function ownWords(line: string): string[] {
  const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|([^\s'"]+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? '',
  );
  const from = words.findIndex((word) => /(^|\()cofferdam$/.test(word)) + 1;
  const rest = words.slice(from);
  const to = rest.indexOf('|');
  const own = to < 0 ? rest : rest.slice(0, to);
  return /[$<]\(cofferdam/.test(line) ? own.map((word) => word.replace(/\)$/, '')) : own;
}
