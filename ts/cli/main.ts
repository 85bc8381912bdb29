#!/usr/bin/env node
/** The `cofferdam` program: finds the command, runs it, and prints its errors. */
import { version } from '../version';
import { EXIT, say, UsageError } from './command';
import { COMMANDS } from './commands';
import { helpOf, overview } from './help';
import { asksForHelp, parse } from './parse';
import { outputClosed, Stopped } from './stop';
import { inWords } from './words';

async function main([name, ...words]: string[]): Promise<number> {
  if (name === undefined) {
    process.stderr.write(overview(COMMANDS));
    return EXIT.usage;
  }
  if (name === '--version' || name === '-v') {
    process.stdout.write(`${version}\n`);
    return EXIT.ok;
  }
  const asked = ['--help', '-h', 'help'].includes(name);
  if (asked && words.length === 0) {
    process.stdout.write(overview(COMMANDS));
    return EXIT.ok;
  }
  const wanted = asked ? words[0] : name;
  const command = COMMANDS.find((candidate) => candidate.name === wanted);
  if (!command) {
    const listed = COMMANDS.filter(({ hidden }) => !hidden);
    const names = listed.map((candidate) => candidate.name).join(', ');
    throw new UsageError(`unknown command ${JSON.stringify(wanted)}; commands: ${names}`);
  }
  if (asked || asksForHelp(command, words)) {
    process.stdout.write(helpOf(command));
    return EXIT.ok;
  }
  return command.run(parse(command, words));
}

function failed(error: unknown): number {
  if (error instanceof Stopped) return error.exitCode;
  if (error instanceof UsageError) {
    const command = COMMANDS.find(({ name }) => name === process.argv[2]);
    say(`${error.message}\nTry: cofferdam ${command ? `${command.name} ` : ''}--help`);
    return EXIT.usage;
  }
  // A message for errors that users can fix; a stack for bugs.
  say(inWords(error) ?? String((error as Error)?.stack ?? error));
  return EXIT.failed;
}

// `cofferdam ls | head -1`: the reader has read enough.
for (const output of [process.stdout, process.stderr]) {
  output.on('error', (error: NodeJS.ErrnoException) =>
    error.code === 'EPIPE' ? outputClosed() : process.exit(EXIT.failed),
  );
}

main(process.argv.slice(2))
  .catch(failed)
  .then(async (code) => {
    // In pipes, the last writes may still be pending.
    await Promise.all([process.stdout, process.stderr].map((output) => new Promise((done) => output.write('', done))));
    // Standard input may still be open, which would keep the program alive.
    process.exit(code);
  });
