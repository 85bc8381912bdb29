/** `cofferdam doctor`: checks whether sandboxes work on this machine, and how to fix it if not. */
import { version } from '../../version';
import { command, EXIT } from '../command';
import { withoutPasswords } from '../doctor/environment';
import { examine } from '../doctor/examination';
import { type Finding, GROUPS, type State } from '../doctor/finding';
import { BACKENDS, ENGINE } from '../engine';
import { oneOf } from '../parse';
import { JSON_FLAG, paint, print, printJson, type Style } from '../print';
import { stopSignal } from '../stop';

const MARKS: Record<State, readonly [string, Style]> = {
  ok: ['✓', 'green'],
  warning: ['!', 'yellow'],
  problem: ['✗', 'red'],
};

export const doctor = command({
  name: 'doctor',
  summary: 'Check whether sandboxes work on this machine, and how to fix it',
  about: `Checks the engine, what this machine's kernel allows, disks and leftovers; opens a real sandbox, times it and closes it.
Each problem comes with one command that fixes it. Exits with 0 if a sandbox opens, else with 1.`,
  flags: {
    image: {
      type: 'string',
      short: 'i',
      about: 'The image to try (default: one that is present); none is pulled',
      complete: 'image',
    },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam doctor', about: 'Does it work on this machine?' },
    {
      line: "cofferdam doctor --json | jq -r '.findings[].cure | values'",
      about: 'Only the commands that fix problems',
    },
  ],
  async run({ flags }) {
    const { backend, host, image } = flags;
    const found = await examine({
      backend: backend === undefined ? undefined : oneOf('--backend', BACKENDS, backend),
      host,
      image,
      stop: stopSignal(),
    });
    const diagnosis = withoutPasswords(found);
    if (flags.json) printJson({ version, ...diagnosis });
    else {
      for (const group of GROUPS) printGroup(group, diagnosis.findings);
      print(paint(diagnosis.ok ? 'green' : 'red', diagnosis.verdict));
    }
    return diagnosis.ok ? EXIT.ok : EXIT.failed;
  },
});

function printGroup(group: string, findings: readonly Finding[]): void {
  const own = findings.filter((finding) => finding.group === group);
  if (own.length === 0) return;
  print(paint('bold', group));
  for (const { state, text, cure } of own) {
    const [mark, style] = MARKS[state];
    print(`  ${paint(style, mark)} ${text}`);
    if (cure !== null) print(`      ${paint('cyan', cure)}`);
  }
  print('');
}
