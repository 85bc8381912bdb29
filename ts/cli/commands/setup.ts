/** `cofferdam setup`: what an administrator does once, where ordinary users may not make user namespaces. */
import { call, callSite } from '../../internal/call';
import { addon } from '../../internal/native';
import { command, EXIT } from '../command';
import { JSON_FLAG, print, printJson } from '../print';

export const setup = command({
  name: 'setup',
  summary: 'Let ordinary users have sandboxes without a container engine (as root, once)',
  about: `Installs the helper that makes sandboxes without a container engine at a fixed place, and, where the machine has
AppArmor, a profile that lets that program, and no other, make user namespaces. Needed once per version on Ubuntu
23.10 and later.`,
  flags: {
    root: {
      type: 'string',
      value: 'folder',
      about: 'A machine that is not running yet, such as an image that is being built; / unless told',
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
      print(`profile  ${profile ?? 'none: there is no AppArmor here, and none is needed'}`);
    }
    return EXIT.ok;
  },
});
