/** `cofferdam completion`: the script that a shell reads once. It calls `cofferdam __complete` at each Tab. */
import { command, EXIT } from '../command';
import { SCRIPTS, SHELLS } from '../completion-scripts';
import { oneOf } from '../parse';

export const completion = command({
  name: 'completion',
  summary: 'Print the completion script for a shell',
  about: `Prints a script with which bash, zsh or fish completes commands, options, values and sandboxes. The examples are lines
for the startup file of each shell.`,
  operands: [{ name: 'shell', about: SHELLS.join(', '), complete: SHELLS }],
  flags: {},
  examples: [
    { line: 'source <(cofferdam completion bash)', about: '~/.bashrc' },
    { line: 'source <(cofferdam completion zsh)', about: '~/.zshrc, after compinit' },
    { line: 'cofferdam completion fish | source', about: '~/.config/fish/config.fish' },
  ],
  async run({ operands: [shell = ''] }) {
    process.stdout.write(SCRIPTS[oneOf('<shell>', SHELLS, shell)]);
    return EXIT.ok;
  },
});
