import { type Machine, PLATFORMS, platformName } from '../../ts/internal/platform';

const GLIBC_MAPS = '7f00-7f01 r-xp 0 08:01 12 /usr/lib/x86_64-linux-gnu/libc.so.6\n';
const OLD_GLIBC_MAPS = '7f00-7f01 r-xp 0 08:01 12 /lib/x86_64-linux-gnu/libc-2.28.so\n';
const MUSL_MAPS = '7f00-7f01 r-xp 0 08:01 12 /lib/ld-musl-x86_64.so.1\n';

function machine(facts: Partial<Omit<Machine, 'read'>> & { files?: Record<string, string> } = {}): Machine {
  return {
    platform: 'linux',
    arch: 'x64',
    reportedGlibc: () => undefined,
    read: (path) => facts.files?.[path],
    ...facts,
  };
}

describe('the platform of a process', () => {
  test.each([
    ['linux', 'x64', GLIBC_MAPS, 'linux-x64-gnu'],
    ['linux', 'arm64', GLIBC_MAPS, 'linux-arm64-gnu'],
    ['linux', 'x64', MUSL_MAPS, 'linux-x64-musl'],
    ['linux', 'arm64', MUSL_MAPS, 'linux-arm64-musl'],
    ['darwin', 'x64', undefined, 'darwin-x64'],
    ['darwin', 'arm64', undefined, 'darwin-arm64'],
    ['win32', 'x64', undefined, 'win32-x64-msvc'],
    ['win32', 'arm64', undefined, 'win32-arm64-msvc'],
  ])('%s on %s', (platform, arch, maps, name) => {
    const files = maps ? { '/proc/self/maps': maps } : undefined;
    expect(platformName(machine({ platform, arch, files }))).toBe(name);
    expect(PLATFORMS).toContain(name);
  });

  test('is this one', () => {
    expect(PLATFORMS).toContain(platformName());
  });

  test('names what nothing is built for, too', () => {
    expect(platformName(machine({ platform: 'freebsd' }))).toBe('freebsd-x64');
    expect(platformName(machine({ arch: 'riscv64' }))).toBe('linux-riscv64-gnu');
  });
});

describe('the C library of a process', () => {
  const libc = (facts: Parameters<typeof machine>[0]) => platformName(machine(facts)).replace('linux-x64-', '');
  const ldd = { '/usr/bin/ldd': '#!/bin/sh\nexec /lib/ld-musl-x86_64.so.1 --list "$@"\n' };

  test('is what it has loaded, not what the machine has', () => {
    const glibcOnAlpine = { ...ldd, '/proc/self/maps': GLIBC_MAPS };
    expect(libc({ files: glibcOnAlpine, reportedGlibc: () => '' })).toBe('gnu');
    const muslOnDebian = { '/usr/bin/ldd': 'GNU C Library', '/proc/self/maps': MUSL_MAPS };
    expect(libc({ files: muslOnDebian, reportedGlibc: () => '2.36' })).toBe('musl');
  });

  test('is told from old names of glibc', () => {
    expect(libc({ files: { ...ldd, '/proc/self/maps': OLD_GLIBC_MAPS } })).toBe('gnu');
  });

  test.each([
    ['2.36', 'gnu'],
    ['', 'musl'],
  ])('is in the report where /proc cannot be read: "%s"', (version, name) => {
    expect(libc({ reportedGlibc: () => version })).toBe(name);
  });

  test("is that of the system's own ldd where there is neither", () => {
    expect(libc({ files: ldd })).toBe('musl');
    expect(libc({ files: { '/usr/bin/ldd': 'This file is part of the GNU C Library.' } })).toBe('gnu');
    expect(libc({})).toBe('gnu');
  });
});
