import path from 'node:path';
import type { Command } from '../../ts/cli/command';
import { fencesOf, isGenerated, pages, ROOT, textOf } from './pages';
import { callsOfCofferdam, commandsIn } from './shell-words';

const { COMMANDS }: { COMMANDS: readonly Command[] } = require(path.join(ROOT, 'dist/cli/commands.js'));
const { parse } = require(path.join(ROOT, 'dist/cli/parse.js'));

const SCRIPTS = new Set(['sh', 'bash', 'console']);

/** What the program itself would say to such a line. */
function faultOf([name, ...words]: string[]): string | undefined {
  if (name === undefined || ['--help', '-h', '--version', '-v', 'help'].includes(name)) return undefined;
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (!command) return `there is no command "${name}"`;
  if (words.includes('--help') || words.includes('-h')) return undefined;
  try {
    parse(command, words);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

describe('command lines on pages', () => {
  test('are read as a shell reads them', () => {
    const script = `A=1 npx cofferdam run --code 'print("a b")' # hey\nls -l | grep "x y" > out 2>&1 && \\\n  b\\ c &\n`;
    expect(commandsIn(script)).toEqual([
      ['A=1', 'npx', 'cofferdam', 'run', '--code', 'print("a b")'],
      ['ls', '-l'],
      ['grep', 'x y'],
      ['b c'],
    ]);
    expect(callsOfCofferdam(script)).toEqual([['run', '--code', 'print("a b")']]);
    expect(callsOfCofferdam('$ sudo cofferdam setup\ncofferdam: done\n')).toEqual([['setup']]);
  });

  test('that the program would refuse are told', () => {
    expect(faultOf(['no-such-command'])).toBe('there is no command "no-such-command"');
    expect(faultOf(['mcp', '--no-such-option'])).toMatch("'--no-such-option'");
    expect(faultOf(['mcp', '--http'])).toBeUndefined();
  });

  const own = pages.filter((page) => !isGenerated(page));
  const lines = own.flatMap((page) =>
    fencesOf(page)
      .filter(({ language }) => SCRIPTS.has(language))
      .flatMap(({ line, code }) =>
        callsOfCofferdam(code).map((words) => [page, line, words.join(' '), words] as const),
      ),
  );
  test.each(lines)('%s:%d: cofferdam %s', (_page, _line, _shown, words) => {
    expect(faultOf(words)).toBeUndefined();
  });

  test('within a sentence name commands that there are', () => {
    const named = own.flatMap((page) =>
      [...textOf(page).matchAll(/(?<!`)`(?:npx )?cofferdam ([a-z][a-z-]*)[^`\n]*`/g)].map((match) => [page, match[1]]),
    );
    const unknown = named.filter(
      ([, name]) => !['help', ...COMMANDS.map((command) => command.name)].includes(name ?? ''),
    );
    expect(unknown).toEqual([]);
  });
});
