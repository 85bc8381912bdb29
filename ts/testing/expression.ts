/** Converts expressions of Rust's `regex`, which the guest uses, to JavaScript. */
import { SandboxError } from '../errors';
import type { NativeGrep } from '../internal/binding';

/** Their meaning in Rust, where they cover all of Unicode. */
const CLASSES: Record<string, [inside: string, alone: string]> = {
  d: ['\\p{Nd}', '\\p{Nd}'],
  D: ['\\P{Nd}', '\\P{Nd}'],
  w: ['\\p{L}\\p{M}\\p{N}\\p{Pc}', '[\\p{L}\\p{M}\\p{N}\\p{Pc}]'],
  W: ['', '[^\\p{L}\\p{M}\\p{N}\\p{Pc}]'],
  A: ['', '(?<![^])'],
  z: ['', '(?![^])'],
};

function refuse(pattern: string, why: string): never {
  throw new SandboxError('INVALID_ARGUMENT', `"${pattern.slice(0, 60)}" is not a regular expression: ${why}`);
}

export function toExpression({
  pattern,
  literal,
  ignoreCase,
}: Pick<NativeGrep, 'pattern' | 'literal' | 'ignoreCase'>): RegExp {
  if (pattern.includes('\n')) refuse(pattern, 'a search is line by line: it has no line end in it');
  const flags = ignoreCase ? 'ui' : 'u';
  if (literal) return new RegExp(pattern.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), flags);
  if (pattern.length > 65_536) refuse(pattern, 'it is too long');
  if (/\(\?<?[=!]/.test(pattern)) refuse(pattern, 'look-around is not supported');
  if (/\[\[:/.test(pattern)) refuse(pattern, 'the fake of cofferdam/testing does not know classes such as [[:alpha:]]');
  const inline = /^\(\?i\)/.test(pattern);
  const source = translated(pattern.replace(/^\(\?i\)/, '').replaceAll('(?P<', '(?<'), pattern);
  try {
    return new RegExp(source, inline ? 'ui' : flags);
  } catch (error) {
    const { message } = error as Error;
    return refuse(pattern, message.includes('Unterminated group') ? 'unclosed group' : message);
  }
}

function translated(source: string, pattern: string): string {
  let isInClass = false;
  return source.replace(/\\(.)|[[\]]/gsu, (whole, letter: string | undefined) => {
    if (letter === undefined) {
      isInClass = whole === '[';
      return whole;
    }
    if (/[1-9]/.test(letter)) refuse(pattern, 'backreferences are not supported');
    const known = CLASSES[letter];
    if (known) return known[isInClass ? 0 : 1];
    // With the flag `u`, JavaScript refuses escapes without a meaning.
    return /[\w\\^$.*+?()[\]{}|/-]/.test(letter) ? (letter === '-' && !isInClass ? '-' : whole) : letter;
  });
}
