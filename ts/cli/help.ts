/** What `--help` prints, derived from a command's description. */
import { columnsOf, padded } from './columns';
import type { Command, Flag, Flags, Operand } from './command';

/** Wider terminals are common, and wider lines are hard to read. */
const WIDTH = 120;

const HELP: Flags = { help: { type: 'boolean', short: 'h', about: 'Show this help' } };

export function overview(commands: readonly Command[]): string {
  return `Usage: cofferdam <command> [options]

Persistent Linux sandboxes for agents.

Commands:
${columns(commands.filter(({ hidden }) => !hidden).map(({ name, summary }) => [name, summary]))}

Options:
${columns([
  ['--help', 'Show this help, or that of a command'],
  ['--version', 'Show the version'],
])}

Example:
  cofferdam run --code 'print(6 * 7)'
`;
}

export function helpOf(command: Command): string {
  const { summary, about, operands = [], tail, flags, examples } = command;
  const words = [...operands, ...(tail ? [tail] : [])].filter((operand) => operand.about !== undefined);
  const arguments_ = words.map(({ name, about = '' }) => [`<${name}>`, about] as const);
  return [
    `Usage: ${usage(command)}`,
    ...paragraphs(about ?? `${summary}.`),
    ...(arguments_.length > 0 ? [`Arguments:\n${columns(arguments_)}`] : []),
    ...sections({ ...flags, ...HELP }),
    `${examples.length > 1 ? 'Examples' : 'Example'}:\n${examples.map(({ line, about }) => `  # ${about}\n  ${line}`).join('\n')}`,
  ]
    .join('\n\n')
    .concat('\n');
}

export function usage({ name, operands = [], tail }: Command): string {
  return ['cofferdam', name, '[options]', ...operands.map(word), ...(tail ? [word(tail)] : [])].join(' ');
}

function word({ name, optional, many }: Operand): string {
  const shown = `<${name}>${many ? '…' : ''}`;
  return optional ? `[${shown}]` : shown;
}

/** The command's own options first, then the groups that several commands share. */
function sections(flags: Flags): string[] {
  const groups = new Map<string, (readonly [string, string])[]>([['Options', []]]);
  for (const [name, flag] of Object.entries(flags)) {
    const rows = groups.get(flag.group ?? 'Options') ?? [];
    groups.set(flag.group ?? 'Options', [...rows, [spelling(name, flag), flag.about] as const]);
  }
  return [...groups].map(([title, rows]) => `${title}:\n${columns(rows)}`);
}

function spelling(name: string, { short, type, value = name, multiple }: Flag): string {
  const names = short === undefined ? `    --${name}` : `-${short}, --${name}`;
  return type === 'boolean' ? names : `${names} <${value}>${multiple ? '…' : ''}`;
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => columnsOf(name)));
  return rows
    .map(([name, about]) => `  ${padded(name, width)}  ${wrapped(about, WIDTH - width - 4, ' '.repeat(width + 4))}`)
    .join('\n');
}

/** Separated by empty lines, and wrapped to our width, not to that of the source. */
function paragraphs(text: string): string[] {
  return text.split(/\n{2,}/).map((paragraph) => wrapped(paragraph.replaceAll('\n', ' '), WIDTH));
}

/** In lines of at most `width` columns, those after the first behind `indent`. */
function wrapped(text: string, width: number, indent = ''): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && columnsOf(last) + 1 + columnsOf(word) <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.join(`\n${indent}`);
}
