/**
 * Checks how deep YAML is nested, without recursion. The parser recurses, and hostile depth crashes the program inside V8,
 * where nothing can be caught.
 */
import { Lexer } from 'yaml';

const MAX_DEPTH = 64;

/** Blocks are nested by columns; two levels can share one. */
const MAX_COLUMN = 200;

/** The lexer's mark before a scalar. */
const SCALAR = '\u001f';

const INDICATORS = new Set(['-', '?', ':']);

/** Whether it is safe to parse. Brackets in strings and comments do not count. */
export function isShallow(yaml: string): boolean {
  let flow = 0;
  let column = 0;
  let indicators = 0;
  let atStart = true;
  let isScalar = false;
  for (const lexeme of new Lexer().lex(yaml)) {
    const wasScalar = isScalar;
    isScalar = lexeme === SCALAR;
    if (isScalar || wasScalar) {
      atStart &&= isScalar;
      continue;
    }
    if (lexeme === '[' || lexeme === '{') flow += 1;
    else if (lexeme === ']' || lexeme === '}') flow -= 1;
    if (lexeme === ',' || (flow === 0 && lexeme.endsWith('\n'))) indicators = 0;
    else if (INDICATORS.has(lexeme)) indicators += 1;
    if (lexeme.endsWith('\n')) {
      column = 0;
      atStart = true;
    } else if (atStart) {
      atStart = INDICATORS.has(lexeme) || lexeme.trim() === '';
      column += lexeme.length;
    }
    if (flow > MAX_DEPTH || indicators > MAX_DEPTH || (flow === 0 && column > MAX_COLUMN)) return false;
  }
  return true;
}
