/** `cofferdam prune`: removes what dead programs and older versions left. */
import { command, EXIT, say, UsageError } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { time } from '../parse';
import { JSON_FLAG, print, printJson } from '../print';

export const prune = command({
  name: 'prune',
  summary: 'Remove what dead programs and older versions left',
  about: `Removes sandboxes that never started or did not remove themselves, and what belongs to them. What a running program uses
is not touched. Persistent workspaces and cached packages are removed only on request.`,
  flags: {
    'dry-run': { type: 'boolean', short: 'n', about: 'Report what would be removed, and remove nothing' },
    volumes: { type: 'boolean', about: 'Also persistent workspaces that no sandbox uses; their files are lost' },
    packages: { type: 'boolean', about: 'Also cached packages that no sandbox uses' },
    'older-than': { type: 'string', value: 'time', about: 'Only what is at least this old: 12h, 7d' },
    ...JSON_FLAG,
    ...ENGINE,
  },
  examples: [
    { line: 'cofferdam prune --dry-run', about: 'Look first' },
    {
      line: 'cofferdam prune --volumes --packages --older-than 7d',
      about: 'Everything older than a week that is not in use',
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
