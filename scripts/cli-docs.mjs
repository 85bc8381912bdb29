// `npm run docs:cli`: the reference of the command line in docs/cli.md, made of the commands' own descriptions.
//
//   node scripts/cli-docs.mjs           writes it
//   node scripts/cli-docs.mjs --check   fails where it is stale

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const { COMMANDS } = require('../dist/cli/commands.js');
const { helpOf } = require('../dist/cli/help.js');

const PAGE = fileURLToPath(new URL('../docs/cli.md', import.meta.url));
const MARK = '<!-- From here on: npm run docs:cli -->\n';

const page = readFileSync(PAGE, 'utf8');
const end = page.indexOf(MARK);
if (end < 0) throw new Error(`docs/cli.md has lost its line ${MARK}`);
const made = `${page.slice(0, end)}${MARK}\n${reference()}`;

if (!process.argv.includes('--check')) writeFileSync(PAGE, made);
else if (made !== page) {
  console.error('docs/cli.md does not say what the commands say. Run: npm run build:ts && npm run docs:cli');
  process.exitCode = 1;
}

function reference() {
  const listed = COMMANDS.filter(({ hidden }) => !hidden);
  const rows = listed.map(({ name, summary }) => [`[\`${name}\`](#cofferdam-${name})`, summary]);
  const sections = listed.map((command) => `### cofferdam ${command.name}\n\n\`\`\`text\n${helpOf(command)}\`\`\`\n`);
  return [...table([['', ''], ...rows]), '', ...sections].join('\n');
}

/** As wide as its cells, which is how the formatter has it. */
function table([head, ...rows]) {
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)];
}
