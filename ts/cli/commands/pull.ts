/** `cofferdam pull`: pulls an image before a sandbox needs it. */
import { command, EXIT } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { print, printJson } from '../print';
import { PullDisplay } from '../pull-display';
import { stopSignal } from '../stop';

export const pull = command({
  name: 'pull',
  summary: 'Pull an image',
  about: `Pulls an image, so that the first sandbox need not wait for it, and prints its full name. Progress goes to standard error:
bars on a terminal, else a line per change.`,
  operands: [{ name: 'image', about: 'linux, python, node or any image', complete: 'image' }],
  flags: {
    quiet: { type: 'boolean', short: 'q', about: 'Show no progress' },
    json: { type: 'boolean', about: 'Print a line of JSON per step' },
    ...ENGINE,
  },
  examples: [{ line: 'cofferdam pull python', about: 'The image of --image python' }],
  async run({ flags, operands: [image = ''] }) {
    const display = flags.quiet || flags.json ? undefined : new PullDisplay(process.stderr);
    let resolved = image;
    try {
      for await (const step of managerFrom(flags).pull(image, { signal: stopSignal() })) {
        resolved = step.image;
        if (flags.json) printJson(step, 'line');
        display?.show(step);
      }
    } finally {
      display?.finish();
    }
    if (!flags.json) print(resolved);
    return EXIT.ok;
  },
});
