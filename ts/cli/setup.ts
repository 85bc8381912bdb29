/** `cofferdam setup`: what an administrator does once, where ordinary users may not make user namespaces. */
import { call, callSite } from '../internal/call';
import { addon } from '../internal/native';
import { type Command, EXIT, options } from './command';

const HELP = `Usage: sudo npx cofferdam setup [--root <folder>]

Installs the helper that makes sandboxes without a container engine at a fixed place, and, where the machine has AppArmor, a
profile that lets that program, and no other, make user namespaces. Needed once per version on Ubuntu 23.10 and later.

Options:
  --root <folder>  A machine that is not running yet, such as an image that is being built; / unless told

Example:
  sudo npx cofferdam setup
`;

export const setup: Command = {
  name: 'setup',
  summary: 'Let ordinary users have sandboxes without a container engine (as root, once)',
  help: HELP,
  async run(args) {
    const { root } = options({ args, options: { root: { type: 'string', default: '/' } } });
    const { helper, profile } = await call(callSite(setup.run), () => addon().setupNamespaces(root));
    process.stdout.write(`helper   ${helper}\n`);
    process.stdout.write(`profile  ${profile ?? 'none: there is no AppArmor here, and none is needed'}\n`);
    return EXIT.ok;
  },
};
