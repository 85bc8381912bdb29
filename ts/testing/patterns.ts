/** Glob patterns and `.gitignore` rules, with the guest's meaning. */
import { SandboxError } from '../errors';

function bad(pattern: string, why: string): never {
  throw new SandboxError('INVALID_ARGUMENT', `not a pattern for paths: error parsing glob '${pattern}': ${why}`);
}

/** Matches a whole path below the root. `*` stays within a name, `**` does not. */
export function globExpression(pattern: string): RegExp {
  let source = '';
  let depth = 0;
  for (let at = 0; at < pattern.length; at += 1) {
    const rest = pattern.slice(at);
    const char = pattern[at] as string;
    const isStart = at === 0 || pattern[at - 1] === '/';
    if (isStart && rest === '**') {
      source += '.+';
      at += 1;
    } else if (isStart && rest.startsWith('**/')) {
      source += '(?:.*/)?';
      at += 2;
    } else if (char === '*') {
      source += '[^/]*';
    } else if (char === '?') {
      source += '[^/]';
    } else if (char === '[') {
      const [whole, not, set] = /^\[([!^]?)(\]?[^\]]*)\]/.exec(rest) ?? bad(pattern, 'unclosed character class');
      source += `(?!/)[${not ? '^' : ''}${(set as string).replace(/[\\\]^]/g, '\\$&')}]`;
      at += whole.length - 1;
    } else if (char === '{') {
      depth += 1;
      source += '(?:';
    } else if (char === '}' && depth > 0) {
      depth -= 1;
      source += ')';
    } else if (char === ',' && depth > 0) {
      source += '|';
    } else if (char === '\\' && at + 1 < pattern.length) {
      at += 1;
      source += escaped(pattern[at] as string);
    } else {
      source += escaped(char);
    }
  }
  if (depth > 0) bad(pattern, 'unclosed alternate group');
  return new RegExp(`^(?:${source})$`, 'su');
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

export type PathTest = (path: string, isDir: boolean) => boolean;

/** Any of several patterns; those without a `/` match `anywhere` below the root, or only in it. */
export function pathTest(patterns: string[], anywhere: boolean): PathTest {
  const tests = patterns.map((pattern) => {
    const text = pattern.replace(/^\.\//, '');
    const name = text.replace(/\/$/, '');
    const expression = globExpression(anywhere && !name.includes('/') ? `**/${name}` : name.replace(/^\/+/, ''));
    return (path: string, isDir: boolean) => (isDir || name === text) && expression.test(path);
  });
  return (path, isDir) => tests.some((test) => test(path, isDir));
}

/** What rules say of a path below their folder: ignored, not ignored, or nothing. */
export type Rules = (path: string, isDir: boolean) => boolean | undefined;

/** Lines of a `.gitignore`. The last one that matches counts. */
export function gitignoreRules(lines: string[]): Rules {
  const rules = lines.flatMap((line) => {
    const text = line.replace(/\r$/, '').replace(/(?<!\\)\s+$/, '');
    if (text === '' || text.startsWith('#')) return [];
    const isNegated = text.startsWith('!');
    const pattern = text.slice(isNegated ? 1 : 0);
    try {
      return [{ isIgnored: !isNegated, fits: pathTest([pattern], true) }];
    } catch {
      // As in git: an invalid pattern matches nothing.
      return [];
    }
  });
  return (path, isDir) => rules.findLast(({ fits }) => fits(path, isDir))?.isIgnored;
}
