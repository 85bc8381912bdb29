import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Den } from './den';
import { expectShut } from './shut';
import { describeWorlds } from './worlds';

/** The device that the host's root is on. */
function rootDevice(): [string, string] {
  const [device, kind] = execFileSync('findmnt', ['-no', 'SOURCE,FSTYPE', '/'], { encoding: 'utf8' })
    .trim()
    .split(/\s+/);
  return [device ?? '', kind ?? ''];
}

describeWorlds('mounts', (world) => {
  const den = new Den(world);
  beforeAll(() => den.start());
  afterAll(() => den.stop());
  let before = '';
  // The host's own must stay as they are, but for those that engines, also those of other tests, make and remove all day.
  const ofEngines = /.*\/(docker|cofferdam-own-[^/ ]*)\/.*\n/g;
  const ofHost = () => readFileSync(`/proc/${den.witness.pid}/mounts`, 'utf8').replace(ofEngines, '');
  beforeAll(() => {
    before = ofHost();
  });
  afterEach(() => expect(ofHost()).toBe(before));

  // Outside with mounts of its own, so that nothing of the host's changes.
  const fresh = (...words: string[]) => ({ words: ['mount', ...words], outside: ['fresh-mount', ...words] });

  test.each(['tmpfs', 'bind', 'fsopen', 'pivot-root'])('%s: not with the rights of a sandbox', async (kind) => {
    await expectShut(den, fresh(kind));
  });

  test.each(['proc', 'sysfs', 'cgroup', 'open-tree', 'bare-pivot-root'])(
    '%s: not with the rights of a sandbox',
    async (kind) => {
      await expectShut(den, { ...fresh(kind), by: 'root' });
    },
  );

  test('the host’s disk cannot be mounted', async () => {
    await expectShut(den, { ...fresh('device', ...rootDevice()), by: 'root' });
  });

  test.each(['/proc', '/proc/sys', '/proc/kcore', '/sys', '/sys/firmware', '/dev'])(
    'what covers %s cannot be taken away',
    async (place) => {
      await expectShut(den, {
        words: ['mount', 'unmask', place],
        outside: ['fresh-mount', 'unmask', '/proc'],
        by: 'root',
      });
    },
  );

  test.each(['/proc', '/proc/sys', '/sys'])('%s cannot be made writable', async (place) => {
    await expectShut(den, {
      words: ['mount', 'remount', place],
      outside: ['fresh-mount', 'remount', '/proc'],
      by: 'root',
    });
  });

  test.each(['unshare', 'clone', 'clone3'])('no user namespace by %s, in which one would be root', async (way) => {
    await expectShut(den, { words: ['enter', way] });
  });

  test.each(['tmpfs', 'bind', 'fsopen', 'pivot-root'])('%s: not in namespaces of one’s own either', async (kind) => {
    await expectShut(den, { words: ['fresh-mount', kind] });
  });

  test.each(['proc', 'sysfs', 'cgroup', 'open-tree'])('%s: not in namespaces of one’s own either', async (kind) => {
    await expectShut(den, { words: ['fresh-mount', kind], by: 'root' });
  });
});
