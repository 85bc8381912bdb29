/** `cofferdam prune`: removes what dead programs and older versions left. */
import { command, EXIT, say, UsageError } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { time } from '../parse';
import { JSON_FLAG, print, printJson } from '../print';

export const prune = command({
  name: 'prune',
  summary: 'Remove what dead programs and older versions left',
  about: `Removes sandboxes that were never started or did not remove themselves, and what belongs to them. What a living program
uses is not touched; persistent workspaces and cached packages are only removed when asked for.`,
  flags: {
    'dry-run': { type: 'boolean', short: 'n', about: 'Say what would be removed, and do nothing' },
    volumes: { type: 'boolean', about: 'Persistent workspaces, too, that no sandbox uses: their data is gone then' },
    packages: { type: 'boolean', about: 'Cached packages, too, that no sandbox uses' },
    'older-than': { type: 'string', value: 'time', about: 'Only what was made at least so long ago: 12h, 7d' },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam prune --dry-run', about: 'Look first' },
    {
      line: 'cofferdam prune --volumes --packages --older-than 7d',
      about: 'All that was made more than a week ago, and is not in use now',
    },
  ],
  async run({ flags }) {
    if (flags['older-than'] === 'never')
      throw new UsageError('--older-than must be a time such as 12h or 7d, not "never"');
    const report = await managerFrom(flags).prune({
      dryRun: flags['dry-run'],
      volumes: flags.volumes,
      packages: flags.packages,
      olderThanMs: time('--older-than', flags['older-than']),
    });
    const { sandboxes, volumes, packages } = report;
    if (flags.json) printJson(report);
    else {
      for (const id of sandboxes) print(`sandbox   ${id}`);
      for (const name of volumes) print(`volume    ${name}`);
      for (const name of packages) print(`packages  ${name}`);
      const count = sandboxes.length + volumes.length + packages.length;
      say(flags['dry-run'] ? `would remove ${count}` : `removed ${count}`);
    }
    return EXIT.ok;
  },
});
