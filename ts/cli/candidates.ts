/** Completions for a command line, from the descriptions of the commands. */
import { MAIN_SHORTCUTS } from '../internal/images';
import type { Command, Completion, Flag, Flags } from './command';
import { placeOf } from './place';

export interface Candidate {
  readonly word: string;
  readonly about: string;
}

/** What the shell itself completes. */
export type Paths = 'file' | 'folder';

export interface Offer {
  readonly candidates: readonly Candidate[];
  readonly paths?: Paths;
}

/** Asks the engine; the command line may select it. */
export interface Finder {
  sandboxes(engine: Engine): Promise<readonly Candidate[]>;
  /** Names in a folder of a sandbox; those of folders end in a slash. */
  inside(engine: Engine, sandbox: string, folder: string): Promise<readonly string[]>;
}

export type Engine = Readonly<Record<string, string>>;

const HELP: Flags = { help: { type: 'boolean', short: 'h', about: 'Show help' } };

/** `words` are those after the program's name up to the cursor; the last one is being typed. */
export async function offer(commands: readonly Command[], words: readonly string[], finder: Finder): Promise<Offer> {
  const current = words.at(-1) ?? '';
  const listed = commands.filter(({ hidden }) => !hidden);
  const names = listed.map(({ name, summary }) => ({ word: name, about: summary }));
  if (words.length <= 1) return { candidates: fitting(current, [...names, ...ofProgram(current)]) };
  const [name, ...rest] = words;
  if (name === 'help') return { candidates: rest.length === 1 ? fitting(current, names) : [] };
  const command = commands.find((candidate) => candidate.name === name);
  if (!command) return { candidates: [] };

  const line = read(command, rest.slice(0, -1));
  const flags = { ...command.flags, ...HELP };
  const values = async (of: Completion | undefined, before = ''): Promise<Offer> => {
    const { candidates, paths } = await found(of, current, line.values, finder);
    const whole = candidates.map(({ word, about }) => ({ word: `${before}${word}`, about }));
    return { candidates: fitting(current, whole), paths };
  };
  if (line.awaits) return values(line.awaits.complete);
  if (!line.isOver && current.startsWith('-') && current !== '-') {
    const [, before, flag] = /^(--([^=]+)=)/.exec(current) ?? [];
    if (before !== undefined && flag !== undefined) return values(flags[flag]?.complete, before);
    return { candidates: fitting(current, ofFlags(flags, line.given)) };
  }
  return values(operandAt(command, line)?.complete);
}

function ofProgram(current: string): Candidate[] {
  const flags = [
    { word: '--help', about: 'Show help' },
    { word: '--version', about: 'Show the version' },
  ];
  return current.startsWith('-') ? flags : [{ word: 'help', about: 'Show what a command takes' }];
}

function ofFlags(flags: Flags, given: ReadonlySet<string>): Candidate[] {
  return Object.entries(flags)
    .filter(([name, { multiple }]) => multiple || !given.has(name))
    .map(([name, { about }]) => ({ word: `--${name}`, about }));
}

interface Line {
  /** The names of the flags that were given. */
  readonly given: Set<string>;
  readonly values: Record<string, string>;
  operands: number;
  /** Everything that follows belongs to another program, or is no option. */
  isOver: boolean;
  /** The flag whose value comes next. */
  awaits?: Flag;
}

function read({ flags, operands = [], tail }: Command, words: readonly string[]): Line {
  const line: Line = { given: new Set(), values: {}, operands: 0, isOver: false };
  const names = Object.keys(flags);
  let awaited = '';
  for (const word of words) {
    const [, long, value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (line.awaits) {
      line.values[awaited] = word;
      line.awaits = undefined;
    } else if (!line.isOver && word === '--') {
      line.isOver = true;
      // What follows belongs to the other program, even if operands are missing.
      if (tail) line.operands = Math.max(line.operands, operands.length);
    } else if (!line.isOver && word.startsWith('-') && word !== '-') {
      const name = long ?? names.find((candidate) => flags[candidate]?.short === word.at(-1)) ?? '';
      const flag = flags[name];
      line.given.add(name);
      if (value !== undefined) line.values[name] = value;
      else if (flag?.type === 'string') {
        awaited = name;
        line.awaits = flag;
      }
    } else {
      line.operands += 1;
      if (tail && line.operands > operands.length) line.isOver = true;
    }
  }
  return line;
}

function operandAt({ operands = [], tail }: Command, { operands: count }: Line) {
  const many = operands.find((operand) => operand.many);
  return operands[count] ?? tail ?? many;
}

async function found(of: Completion | undefined, current: string, engine: Engine, finder: Finder): Promise<Offer> {
  if (of === undefined) return { candidates: [] };
  if (of === 'file' || of === 'folder') return { candidates: [], paths: of };
  if (of === 'sandbox') return { candidates: await finder.sandboxes(engine) };
  if (of === 'place') {
    const place = placeOf(current);
    if (place.kind === 'sandbox') return { candidates: await within(place, current, engine, finder) };
    const places = (await finder.sandboxes(engine)).map(({ word, about }) => ({ word: `${word}:`, about }));
    return { candidates: places, paths: 'file' };
  }
  const words = of === 'image' ? MAIN_SHORTCUTS : of;
  return { candidates: words.map((word) => ({ word, about: '' })) };
}

async function within(
  { sandbox, path }: { sandbox: string; path: string },
  current: string,
  engine: Engine,
  finder: Finder,
): Promise<Candidate[]> {
  const folder = path.slice(0, path.lastIndexOf('/') + 1);
  // What was typed, up to the name to complete.
  const before = current.slice(0, Math.max(current.lastIndexOf('/'), current.lastIndexOf(':')) + 1);
  const names = await finder.inside(engine, sandbox, folder || '.');
  return names.map((name) => ({ word: `${before}${name}`, about: '' }));
}

function fitting(current: string, candidates: readonly Candidate[]): Candidate[] {
  return candidates.filter(({ word }) => word.startsWith(current));
}
