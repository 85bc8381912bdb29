/** `cofferdam setup`: run once by an administrator where ordinary users cannot create user namespaces. */
import { call, callSite } from '../../internal/call';
import { addon } from '../../internal/native';
import { command, EXIT } from '../command';
import { JSON_FLAG, print, printJson } from '../print';

export const setup = command({
  name: 'setup',
  summary: 'Allow ordinary users sandboxes without a container engine (run once, as root)',
  about: `Installs the helper that creates sandboxes without a container engine at a fixed path and, if the machine has AppArmor, a
profile that allows this program, and no other, to create user namespaces. Needed once per version on Ubuntu 23.10 and
later.`,
  flags: {
    root: {
      type: 'string',
      value: 'folder',
      about: 'Root folder of another system, such as an image being built (default: /)',
      complete: 'folder',
    },
    ...JSON_FLAG,
  },
  examples: [{ line: 'sudo npx cofferdam setup', about: 'Once per machine and version' }],
  async run({ flags }) {
    const { helper, profile } = await call(callSite(setup.run), () => addon().setupNamespaces(flags.root ?? '/'));
    if (flags.json) printJson({ helper, profile: profile ?? null });
    else {
      print(`helper   ${helper}`);
      print(`profile  ${profile ?? 'none: this machine has no AppArmor, and needs none'}`);
    }
    return EXIT.ok;
  },
});
