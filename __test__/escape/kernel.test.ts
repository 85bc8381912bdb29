import { existsSync, readFileSync, statSync } from 'node:fs';
import { Den } from './den';
import { everyUser, expectShut } from './shut';
import { describeWorlds } from './worlds';

/** What everybody may ask of a kernel, as far as it has it. */
const ANYBODY = ['keyctl', 'add_key', 'request_key', 'userfaultfd', 'perf_event_open', 'io_uring_setup', 'quotactl'];

/** What root may. */
const ROOT = [
  ...['bpf', 'fanotify_init', 'init_module', 'finit_module', 'delete_module', 'kexec_load', 'reboot', 'swapon'],
  ...['swapoff', 'settimeofday', 'clock_adjtime', 'acct', 'syslog', 'iopl', 'ioperm', 'sethostname'],
];

/** By number: of 32-bit programs, and of x32. */
const OTHER_NUMBERS: [string, string[]][] = [
  ['keyctl by its 32-bit number', ['call-32', '288', '0', '-3', '0']],
  ['unshare by its 32-bit number', ['call-32', '310', '0x10000000']],
  ['a vsock socket by its 32-bit number', ['call-32', '359', '40', '1', '0']],
  ['keyctl by its x32 number', ['call-x32', '250', '0', '-3', '0']],
  ['unshare by its x32 number', ['call-x32', '272', '0x10000000']],
];

const DEVICES = [
  'kvm',
  'vda',
  'sda',
  'nvme0n1',
  'mem',
  'port',
  'kmsg',
  'fuse',
  'net/tun',
  'vsock',
  'loop-control',
  'loop0',
  'console',
];

/** Files of the kernel's by which a sandbox once took its host. */
const SETTINGS = [
  '/proc/sys/kernel/core_pattern',
  '/proc/sys/kernel/modprobe',
  '/proc/sys/kernel/hostname',
  '/proc/sys/vm/overcommit_memory',
  '/proc/sys/fs/binfmt_misc/register',
  '/proc/sysrq-trigger',
  '/sys/kernel/uevent_helper',
  '/sys/fs/cgroup/release_agent',
  '/sys/fs/cgroup/memory/release_agent',
  '/sys/fs/cgroup/cgroup.procs',
  '/sys/fs/cgroup/memory/cgroup.procs',
];

describeWorlds('the kernel', (world) => {
  const den = new Den(world);
  beforeAll(() => den.start());
  afterAll(() => den.stop());

  test.each(ANYBODY)('%s is refused', async (name) => {
    await expectShut(den, { words: ['call', name] });
  });

  test.each(ROOT)('%s is refused', async (name) => {
    await expectShut(den, { words: ['call', name], by: 'root' });
  });

  if (process.arch === 'x64') {
    test.each(OTHER_NUMBERS)('%s is refused', async (_, words) => {
      await expectShut(den, { words });
    });
  }

  test('devices of the machine cannot be opened, nor made again', async () => {
    const found = DEVICES.map((name) => `/dev/${name}`).filter((path) => existsSync(path));
    let opened = 0;
    for (const path of found) {
      opened += 'got' in (await den.outside(['open', path, 'r'])) ? 1 : 0;
      for (const [boxUser, answer] of await everyUser(den, ['open', path, 'r'])) {
        expect({ path, boxUser, answer }).not.toHaveProperty('answer.got');
      }
      const status = statSync(path);
      const numbers = [(status.rdev >> 8) & 0xfff, (status.rdev & 0xff) | ((status.rdev >> 12) & 0xfff00)].map(String);
      const words = ['mknod', status.isBlockDevice() ? 'b' : 'c', ...numbers];
      for (const [boxUser, answer] of await everyUser(den, words)) {
        expect({ path, boxUser, answer }).not.toHaveProperty('answer.got');
      }
    }
    // Both attempts work where they are allowed.
    if (den.isRoot) expect(opened).toBeGreaterThan(0);
    if (den.isRoot) expect(await den.outside(['mknod', 'c', '1', '3'])).toHaveProperty('got');
  });

  test('settings of the machine cannot be opened for writing', async () => {
    const found = SETTINGS.filter((path) => existsSync(path));
    expect(found).toContain('/proc/sys/kernel/core_pattern');
    const before = readFileSync('/proc/sys/kernel/core_pattern', 'utf8');
    for (const path of found) await expectShut(den, { words: ['open', path, 'w'], by: 'root' });
    expect(readFileSync('/proc/sys/kernel/core_pattern', 'utf8')).toBe(before);
  });

  test.each(['/proc/sys', '/sys'])('nothing at all below %s can be opened for writing', async (root) => {
    for (const [boxUser, answer] of await everyUser(den, ['writable', root])) {
      const { got } = answer as { got: { seen: number; opened: string[] } };
      expect({ boxUser, opened: got.opened }).toEqual({ boxUser, opened: [] });
      if (root === '/proc/sys') expect(got.seen).toBeGreaterThan(100);
    }
  });

  test('memory and logs of the machine cannot be read', async () => {
    for (const path of ['/proc/kcore', '/proc/kmsg', '/proc/keys', '/proc/timer_list'].filter((name) =>
      existsSync(name),
    )) {
      for (const [boxUser, answer] of await everyUser(den, ['read', path])) {
        const text = 'got' in answer ? answer.got : '';
        expect({ path, boxUser, text }).toEqual({ path, boxUser, text: '' });
      }
    }
    if (den.isRoot && existsSync('/proc/keys')) expect(await den.outside(['read', '/proc/keys'])).toHaveProperty('got');
  });
});
