import { loadAddon } from '../../ts/internal/load';
import { PLATFORMS } from '../../ts/internal/platform';

const FILE = (platform: string) => `../../cofferdam.${platform}.node`;
const PACKAGE = (platform: string) => `cofferdam-${platform}`;

/** A `require` that knows these modules; an error among them is what loading throws. */
function world(modules: Record<string, unknown>) {
  const asked: string[] = [];
  const require = (id: string) => {
    asked.push(id);
    if (modules[id] instanceof Error) throw modules[id];
    if (id in modules) return modules[id];
    throw Object.assign(new Error(`Cannot find module '${id}'\nRequire stack:\n- here`), { code: 'MODULE_NOT_FOUND' });
  };
  return { require, asked };
}

const addon = (version = '1.2.3') => ({ version: () => version });
const dlopen = (message: string) => Object.assign(new Error(message), { code: 'ERR_DLOPEN_FAILED' });

function refusal(modules: Record<string, unknown>, platform = 'linux-x64-gnu'): string {
  try {
    loadAddon(platform, '1.2.3', world(modules).require);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('it was loaded');
}

describe.each(PLATFORMS)('the addon for %s', (platform) => {
  test("is the checkout's own, where there is one", () => {
    const own = addon();
    const { require, asked } = world({ [FILE(platform)]: own, [PACKAGE(platform)]: addon() });
    expect(loadAddon(platform, '1.2.3', require)).toBe(own);
    expect(asked).toEqual([FILE(platform)]);
  });

  test("is its package's, where there is none", () => {
    const packaged = addon();
    const { require } = world({ [PACKAGE(platform)]: packaged });
    expect(loadAddon(platform, '1.2.3', require)).toBe(packaged);
  });

  test('is the file beside a bundle, where there is no package', () => {
    const copied = addon();
    const { require } = world({ [`./cofferdam.${platform}.node`]: copied });
    expect(loadAddon(platform, '1.2.3', require)).toBe(copied);
  });

  test('of another version is refused, and both versions named', () => {
    const message = refusal({ [PACKAGE(platform)]: addon('1.2.2') }, platform);
    expect(message).toContain(`cofferdam 1.2.3 has no native addon for ${platform}`);
    expect(message).toContain(`${PACKAGE(platform)}: is of version 1.2.2`);
    expect(message).toContain('"npm install cofferdam@1.2.3"');
  });

  test('that is missing is named, with everything that was tried and what to do', () => {
    const message = refusal({}, platform);
    expect(message).toContain(`The package ${PACKAGE(platform)} is not installed`);
    expect(message).toContain(`"npm install ${PACKAGE(platform)}@1.2.3"`);
    expect(message).toContain(`\n  ${FILE(platform)}: Cannot find module`);
    expect(message).toContain(`\n  ${PACKAGE(platform)}: Cannot find module`);
    expect(message).toContain(`\n  ./cofferdam.${platform}.node: Cannot find module`);
    expect(message).not.toContain('Require stack');
  });
});

describe('without an addon, the error tells', () => {
  test('that nothing is built for this platform, and for which it is', () => {
    const message = refusal({}, 'freebsd-x64');
    expect(message).toContain('no native addon for freebsd-x64');
    for (const platform of PLATFORMS) expect(message).toContain(platform);
    expect(message).not.toContain('npm install');
  });

  test('that node_modules came from another machine', () => {
    const message = refusal({ 'cofferdam-darwin-arm64/package.json': {} });
    expect(message).toContain('The package for darwin-arm64 is installed');
    expect(message).toContain('do not copy node_modules');
  });

  test('that the glibc is too old', () => {
    const failure = dlopen("/lib64/libc.so.6: version `GLIBC_2.17' not found (required by cofferdam.node)");
    expect(refusal({ [PACKAGE('linux-x64-gnu')]: failure })).toContain('It takes glibc 2.17 or newer');
  });

  test('that the file system lets nothing be loaded', () => {
    const failure = dlopen('cofferdam.node: failed to map segment from shared object');
    expect(refusal({ [PACKAGE('linux-x64-gnu')]: failure })).toContain('mounted noexec?');
  });

  test('that the file is broken, in the words of the system', () => {
    const message = refusal({ [PACKAGE('linux-x64-gnu')]: dlopen('cofferdam.node: file too short') });
    expect(message).toContain('cofferdam.node: file too short');
    expect(message).toContain('"npm install --force cofferdam-linux-x64-gnu@1.2.3"');
  });

  test('that a package is there without its addon', () => {
    const lost = '/app/node_modules/cofferdam-linux-x64-gnu/cofferdam.linux-x64-gnu.node';
    const words = `Cannot find module '${lost}'. Please verify that the package.json has a valid "main" entry`;
    const inside = Object.assign(new Error(words), { code: 'MODULE_NOT_FOUND' });
    expect(refusal({ [PACKAGE('linux-x64-gnu')]: inside })).toContain('is installed and cannot be loaded');
  });

  test.each([
    ['esbuild', (id: string) => `Dynamic require of "${id}" is not supported`],
    ['rolldown', (id: string) => `Calling \`require\` for "${id}" in an environment that doesn't expose the function.`],
    ['Turbopack', () => 'Cannot find module as expression is too dynamic'],
  ])('that a program was bundled without it, whatever %s says of it', (_, words) => {
    const ids = [FILE('linux-x64-gnu'), PACKAGE('linux-x64-gnu'), './cofferdam.linux-x64-gnu.node'];
    const message = refusal(Object.fromEntries(ids.map((id) => [id, new Error(words(id))])));
    expect(message).toContain('keep cofferdam external');
  });

  test.each([
    ['other version', addon('1.2.2'), 'is of another version: run "npm run build"'],
    ['cannot be loaded', dlopen('invalid ELF header'), 'cannot be loaded: run "npm run build"'],
  ])('that the one of the checkout must be built anew: %s', (_, found, cure) => {
    expect(refusal({ [FILE('linux-x64-gnu')]: found })).toContain(cure);
  });
});
