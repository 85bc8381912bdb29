import { existsSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { Den } from './den';
import { everyUser, expectShut } from './shut';
import { describeWorlds } from './worlds';

/** Of engines, by which one is root of the machine. */
const ENGINES = [
  '/var/run/docker.sock',
  '/run/docker.sock',
  '/run/containerd/containerd.sock',
  '/var/run/docker/containerd/containerd.sock',
  '/run/podman/podman.sock',
  '/run/dbus/system_bus_socket',
];

/** Family, kind, protocol. */
const FAMILIES: [string, [string, string, string], 'root' | 'anyone'][] = [
  ['vsock, which reaches the hypervisor', ['40', '1', '0'], 'anyone'],
  ['packets', ['17', '3', '0x300'], 'root'],
  ['raw internet packets', ['2', '3', '1'], 'root'],
  ['raw internet packets of the newer version', ['10', '3', '58'], 'root'],
  ['the kernel’s ciphers', ['38', '5', '0'], 'anyone'],
  ['bluetooth', ['31', '3', '1'], 'root'],
];

describeWorlds('sockets', (world) => {
  const den = new Den(world);
  beforeAll(() => den.start());
  afterAll(() => den.stop());
  const { witness } = den;

  /** Outside somebody comes, inside nobody does. */
  async function expectUnvisited(words: string[]) {
    const before = witness.visits;
    expect(await den.outside(words)).toEqual({ got: 'connected' });
    for (const [boxUser, answer] of await everyUser(den, words)) {
      expect({ words, boxUser, answer }).not.toHaveProperty('answer.got');
    }
    expect(witness.visits).toBe(before + 1);
  }

  test('of the host cannot be reached by an abstract name', () => expectUnvisited(['abstract', witness.abstractName]));

  test('of the host cannot be reached by a path', () => expectUnvisited(['local', witness.socketPath]));

  test('of the host cannot be reached by any of its addresses', async () => {
    const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
    const own = addresses.filter(({ family }) => family === 'IPv4').map(({ address }) => address);
    expect(own).toContain('127.0.0.1');
    for (const address of own) await expectUnvisited(['tcp', `${address}:${witness.port}`]);
  });

  test('of engines are not there', async () => {
    for (const path of ENGINES) {
      if (den.isRoot && existsSync(path)) expect(await den.outside(['local', path])).toEqual({ got: 'connected' });
      for (const [boxUser, answer] of await everyUser(den, ['local', path])) {
        expect({ path, boxUser, answer }).not.toHaveProperty('answer.got');
      }
    }
  });

  test.each(FAMILIES)('for %s cannot be made', async (_, numbers, by) => {
    await expectShut(den, { words: ['socket', ...numbers], by });
  });

  test('see no network device but a loopback of their own, and cannot change it', async () => {
    const outside = (await den.outside(['links'])) as { got: string[] };
    expect(outside.got).toContain('lo');
    for (const [, answer] of await everyUser(den, ['links'])) expect(answer).toEqual({ got: ['lo'] });
    await expectShut(den, { words: ['set-link'], by: 'root' });
  });
});
