/**
 * One attempt after the other to load the addon for a platform, and an error that tells each reason for having none from
 * the others: they have different cures.
 */
import type * as Binding from './binding';
import { SCOPE } from './package';
import { PLATFORMS } from './platform';

/** The oldest that the builds for Linux with glibc run on; what Node itself is built for is newer. */
export const GLIBC_FLOOR = '2.17';

type Require = (id: string) => unknown;

/**
 * @param platform as `platformName()` has it
 * @param version of the main package: an addon of another one speaks of other arguments
 * @param require that of a module two folders below the package; in a program that was bundled, that of the bundle
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
  const cure =
    inCheckout.kind === 'missing' ? cureOfPackage(inPackage, platform, version, require) : cureOfCheckout(inCheckout);
  const tried = [inCheckout, inPackage, besideBundle].map(({ id, failure }) => `\n  ${id}: ${failure}`).join('');
  throw new Error(`${SCOPE} ${version} has no native addon for ${platform}. ${cure}\nTried:${tried}`);
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

/** Bun and bundlers have words of their own; what names another module is a package that is broken inside. */
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

function cureOfCheckout({ kind }: Attempt): string {
  if (kind === 'other version') return 'The one built in this checkout is of another version: run "npm run build".';
  return 'The one built in this checkout cannot be loaded: run "npm run build" on this machine.';
}

function cureOfPackage({ kind, failure = '' }: Attempt, platform: string, version: string, require: Require): string {
  const name = `${SCOPE}-${platform}`;
  if (!PLATFORMS.includes(platform)) {
    return `It is built for ${PLATFORMS.join(', ')}: run it on one of these, against a remote engine if need be.`;
  }
  if (kind === 'other version') {
    return (
      `${name} must be of the same version as ${SCOPE}: a lock file or an override keeps an old one. ` +
      `Run "npm install ${SCOPE}@${version}", and remove any pin of ${name}.`
    );
  }
  if (kind === 'broken') return cureOfBroken(failure, name, version);
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

function cureOfBroken(failure: string, name: string, version: string): string {
  if (/GLIBC_[\d.]+/.test(failure)) {
    return `It takes glibc ${GLIBC_FLOOR} or newer, and this system's is older: use a newer system or container image.`;
  }
  if (/noexec|failed to map segment|not permitted/i.test(failure)) {
    return 'The system does not let code be loaded from that folder: is node_modules on a file system mounted noexec?';
  }
  return `The package ${name} is installed and cannot be loaded: install it again with "npm install --force ${name}@${version}".`;
}

/** Without loading it: its package.json is enough. */
function isInstalled(name: string, require: Require): boolean {
  try {
    require(`${name}/package.json`);
    return true;
  } catch {
    return false;
  }
}
