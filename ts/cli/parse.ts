/** Parses a command line into the arguments of a command. */
import { parseArgs } from 'node:util';
import { duration } from '../internal/environment';
import { type Command, type Flags, type Given, type Invocation, UsageError } from './command';

/** `--help` anywhere among a command's own words. */
export function asksForHelp(command: Command, words: readonly string[]): boolean {
  const { own } = split(command, words);
  return own.includes('--help') || own.includes('-h');
}

export function parse<F extends Flags>(command: Command<F>, words: readonly string[]): Invocation<F> {
  const { own, tail } = split(command, words);
  const { values, positionals } = usageErrors(() =>
    parseArgs({ args: own, options: optionsOf(command.flags), allowPositionals: true }),
  );
  const operands = command.operands ?? [];
  const missing = operands.find((operand, index) => !operand.optional && positionals[index] === undefined);
  if (missing) throw new UsageError(`<${missing.name}> is missing`);
  const stray = operands.some(({ many }) => many) ? undefined : positionals[operands.length];
  if (stray !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(stray)}`);
  if (command.tail && !command.tail.optional && tail.length === 0)
    throw new UsageError(`<${command.tail.name}> is missing`);
  return { flags: values as Given<F>, operands: positionals, tail };
}

/**
 * Separates a command's own words from those of the program it runs, whose options are not ours. They are separated by the
 * last operand, or by `--`.
 */
function split<F extends Flags>(command: Command<F>, words: readonly string[]): { own: string[]; tail: string[] } {
  if (!command.tail) return { own: [...words], tail: [] };
  const { tokens } = parseArgs({
    args: [...words],
    options: optionsOf(command.flags),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  let operands = command.operands?.length ?? 0;
  for (const { kind, index } of tokens) {
    if (kind === 'option-terminator') return { own: words.slice(0, index), tail: words.slice(index + 1) };
    if (kind !== 'positional') continue;
    if (operands === 0) return { own: words.slice(0, index), tail: words.slice(index) };
    operands -= 1;
  }
  return { own: [...words], tail: [] };
}

function optionsOf(flags: Flags) {
  return Object.fromEntries(
    Object.entries(flags).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short === undefined ? {} : { short }), ...(multiple === undefined ? {} : { multiple }) },
    ]),
  );
}

function usageErrors<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    // Node adds advice on positional arguments that begin with a dash: helpful, but long.
    const [message = ''] = (error as Error).message.split('. To specify');
    throw new UsageError(message);
  }
}

/** An integer. */
export function wholeNumber(option: string, value: string): number {
  if (!/^\d+$/.test(value)) throw new UsageError(`${option} must be a whole number, not ${JSON.stringify(value)}`);
  return Number(value);
}

/** `90s`, `30m`, `4h` or `never`, which is 0; in milliseconds. */
export function time(option: string, value: string | undefined): number | undefined {
  if (value !== undefined && !/^(never|0|\d+(\.\d+)?(ms|s|m|h|d))$/.test(value)) {
    // In the API a bare number means milliseconds; people who type one mean seconds or minutes.
    throw new UsageError(`${option} must be a time such as 500ms, 90s, 30m, 4h or never, not ${JSON.stringify(value)}`);
  }
  return duration(option, value);
}

/** One of a few words. */
export function oneOf<const W extends string>(option: string, words: readonly W[], value: string): W {
  const word = words.find((candidate) => candidate === value);
  if (word === undefined) throw new UsageError(`${option} must be ${words.join(' or ')}, not ${JSON.stringify(value)}`);
  return word;
}

/** `NAME=value` pairs. One without a value takes it from our environment, as with the docker command. */
export function pairs(option: string, given: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    given.map((pair) => {
      const [, name, value] = /^([^=]+)(?:=(.*))?$/s.exec(pair) ?? [];
      if (name === undefined) throw new UsageError(`${option} must be NAME=value, not ${JSON.stringify(pair)}`);
      const found = value ?? process.env[name];
      if (found === undefined)
        throw new UsageError(`${option} ${name} has no value, and is not set in the environment`);
      return [name, found];
    }),
  );
}
