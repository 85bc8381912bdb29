/**
 * Tries each place of the addon for a platform. If none works, the error tells the reasons apart, because they have
 * different fixes.
 */
import type * as Binding from './binding';
import { SCOPE } from './package';
import { PLATFORMS } from './platform';

/** The oldest glibc that the Linux builds run on; Node's own builds need a newer one. */
export const GLIBC_FLOOR = '2.17';

type Require = (id: string) => unknown;

/**
 * @param platform as returned by `platformName()`
 * @param version of the main package: an addon of another version takes other arguments
 * @param require of a module two folders below the package; in a bundled program, of the bundle
 */
export function loadAddon(platform: string, version: string, require: Require): typeof Binding {
  const file = `../../${SCOPE}.${platform}.node`;
  const name = `${SCOPE}-${platform}`;
  const inCheckout = attempt(file, version, require);
  if (inCheckout.binding) return inCheckout.binding;
  const inPackage = attempt(name, version, require);
  if (inPackage.binding) return inPackage.binding;
  const besideBundle = attempt(`./${SCOPE}.${platform}.node`, version, require);
  if (besideBundle.binding) return besideBundle.binding;
  const fix =
    inCheckout.kind === 'missing' ? fixForPackage(inPackage, platform, version, require) : fixForCheckout(inCheckout);
  const tried = [inCheckout, inPackage, besideBundle].map(({ id, failure }) => `\n  ${id}: ${failure}`).join('');
  throw new Error(`${SCOPE} ${version} has no native addon for ${platform}. ${fix}\nTried:${tried}`);
}

interface Attempt {
  id: string;
  binding?: typeof Binding;
  kind?: 'missing' | 'other version' | 'broken';
  /** One line: what went wrong. */
  failure?: string;
}

function attempt(id: string, version: string, require: Require): Attempt {
  try {
    const binding = require(id) as typeof Binding;
    const found = binding.version();
    if (found === version) return { id, binding };
    return { id, kind: 'other version', failure: `is of version ${found}` };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const failure = String(message).split('\n')[0] ?? '';
    return { id, kind: isMissing(code, failure, id) ? 'missing' : 'broken', failure };
  }
}

/** Bun and bundlers have messages of their own. A message that names another module means a broken package. */
function isMissing(code: string | undefined, message: string, id: string): boolean {
  if (message.includes('valid "main" entry')) return false;
  return (
    /^(dynamic require of|calling `require` for)|expression is too dynamic/i.test(message) ||
    ((code === 'MODULE_NOT_FOUND' ||
      code === 'ERR_MODULE_NOT_FOUND' ||
      /^cannot find (module|package)/i.test(message)) &&
      message.includes(id))
  );
}

function fixForCheckout({ kind }: Attempt): string {
  if (kind === 'other version') return 'The one built in this checkout is of another version: run "npm run build".';
  return 'The one built in this checkout cannot be loaded: run "npm run build" on this machine.';
}

function fixForPackage({ kind, failure = '' }: Attempt, platform: string, version: string, require: Require): string {
  const name = `${SCOPE}-${platform}`;
  if (!PLATFORMS.includes(platform)) {
    return `It is built for ${PLATFORMS.join(', ')}: run it on one of these, with a remote engine if needed.`;
  }
  if (kind === 'other version') {
    return (
      `${name} must be of the same version as ${SCOPE}: a lock file or an override pins an old one. ` +
      `Run "npm install ${SCOPE}@${version}", and remove any pin of ${name}.`
    );
  }
  if (kind === 'broken') return fixForBroken(failure, name, version);
  const others = PLATFORMS.filter((other) => other !== platform && isInstalled(`${SCOPE}-${other}`, require));
  if (others.length > 0) {
    return (
      `The package for ${others.join(' and ')} is installed: node_modules comes from another machine or another runtime. ` +
      'Install where the program runs (in a container: inside its image), and do not copy node_modules.'
    );
  }
  return (
    `The package ${name} is not installed. It is an optional dependency of ${SCOPE}: install without --omit=optional ` +
    '(npm), --no-optional (pnpm) or --ignore-optional (yarn). If a lock file from another platform leaves it out, remove ' +
    `the lock file and node_modules and install again, or run "npm install ${name}@${version}". In code that is bundled, ` +
    `keep ${SCOPE} external, or copy the .node file of ${name} beside the bundle. In a checkout, run "npm run build".`
  );
}

function fixForBroken(failure: string, name: string, version: string): string {
  if (/GLIBC_[\d.]+/.test(failure)) {
    return `It takes glibc ${GLIBC_FLOOR} or newer, and this system's is older: use a newer system or container image.`;
  }
  if (/noexec|failed to map segment|not permitted/i.test(failure)) {
    return 'The system does not load code from that folder: is node_modules on a file system mounted noexec?';
  }
  return `The package ${name} is installed and cannot be loaded: install it again with "npm install --force ${name}@${version}".`;
}

/** Looks at its package.json only, without loading it. */
function isInstalled(name: string, require: Require): boolean {
  try {
    require(`${name}/package.json`);
    return true;
  } catch {
    return false;
  }
}
