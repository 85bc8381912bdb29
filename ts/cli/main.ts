#!/usr/bin/env node
/** The `cofferdam` program: finds the command, runs it, and says what went wrong in words. */
import { SandboxError } from '../errors';
import { version } from '../version';
import { type Command, EXIT, say, UsageError } from './command';
import { mcp } from './mcp';
import { setup } from './setup';

const COMMANDS: readonly Command[] = [mcp, setup];

function help(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  const lines = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `Usage: cofferdam <command> [options]

Persistent Linux sandboxes for agents.

Commands:
${lines.join('\n')}

Options:
  --help     Show this, or with a command, what it takes
  --version  Show the version
`;
}

async function main([name, ...args]: string[]): Promise<number> {
  if (name === undefined) {
    process.stderr.write(help());
    return EXIT.usage;
  }
  if (name === '--help' || name === '-h' || name === 'help') {
    process.stdout.write(help());
    return EXIT.ok;
  }
  if (name === '--version' || name === '-v') {
    process.stdout.write(`${version}\n`);
    return EXIT.ok;
  }
  const command = COMMANDS.find((candidate) => candidate.name === name);
  if (!command) {
    const names = COMMANDS.map((candidate) => candidate.name).join(', ');
    throw new UsageError(`there is no command ${JSON.stringify(name)}; there is ${names}`);
  }
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(command.help);
    return EXIT.ok;
  }
  return command.run(args);
}

function failed(error: unknown): number {
  if (error instanceof UsageError) {
    say(`${error.message}\nTry: cofferdam --help`);
    return EXIT.usage;
  }
  // What users can mend is said in words; anything else is a fault of ours, whose place in the code matters.
  say(error instanceof SandboxError ? `${error.message} (${error.code})` : String((error as Error)?.stack ?? error));
  return EXIT.failed;
}

main(process.argv.slice(2))
  .catch(failed)
  // Standard input may still be open, which would keep the program alive.
  .then((code) => process.exit(code));
