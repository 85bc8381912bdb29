// What the command line asks for.

import { parseArgs } from 'node:util';
import { ROWS } from './rows/index.mjs';

export const USAGE = `npm run bench -- [options] [row…]

  rows       ${Object.keys(ROWS).join(' ')}
  --quick    a few samples each: shows that it works, says little about speed
  --strict   exit with 1 when a target is missed
  --no-build measure what is built already
  --help     this text`;

/** Rows keep the order of ROWS, whatever the order they are asked for in. */
export function parseOptions(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { quick: { type: 'boolean' }, strict: { type: 'boolean' }, help: { type: 'boolean' } },
  });
  const unknown = positionals.find((name) => !Object.hasOwn(ROWS, name));
  if (unknown) throw new Error(`there is no row "${unknown}".\n\n${USAGE}`);
  const { quick = false, strict = false, help = false } = values;
  const everything = positionals.length === 0;
  const rows = Object.keys(ROWS).filter((name) => everything || positionals.includes(name));
  return { rows, quick, strict, help, whole: everything && !quick };
}
