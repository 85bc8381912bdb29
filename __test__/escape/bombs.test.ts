import { readdirSync, readFileSync } from 'node:fs';
import { freemem } from 'node:os';
import path from 'node:path';
import { until } from '../support';
import { type Bomb, Den } from './den';
import { describeWorlds, differs } from './worlds';

const LIMITS = { memoryMb: 64, pids: 40, openFiles: 128, workspaceMb: 16 };
const MEBIBYTE = 2 ** 20;

/** Processes of bombs, as the host sees them. */
function bombsOnHost(): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const lines = pids.map((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    } catch {
      // It ended meanwhile.
      return '';
    }
  });
  return lines.filter((line) => line.startsWith('/workspace/probe\0bomb'));
}

/** What is left of sandboxes that are closed; the one that every suite has is open. */
function leftOnHost(state: string): string[] {
  return [...readdirSync(path.join(state, 'boxes')).slice(1), ...readdirSync(path.join(state, 'trash'))];
}

describeWorlds('bombs', (world) => {
  const den = new Den(world);
  let sandbox = '';
  beforeAll(() => den.start());
  beforeEach(async () => {
    sandbox = await den.open(LIMITS);
  });
  // Whatever became of the sandbox: it can be closed, and nothing of it stays.
  afterEach(async () => {
    await den.ask('close', sandbox);
    expect(bombsOnHost()).toEqual([]);
    expect(den.witness.isUntouched).toBe(true);
  });
  afterAll(() => den.stop());

  /** What the host does while a bomb holds all it got. */
  async function expectHostUnharmed(bomb: Bomb, most: number) {
    expect(bomb.taken ?? 0).toBeLessThanOrEqual(most);
    for (const kind of ['processes', 'descriptors', 'terminals', 'pipes', 'watches']) {
      const answer = await den.outside(['bomb', kind, '4'], { leash: true });
      expect({ kind, answer }).toEqual({ kind, answer: { got: { taken: 4, errno: null } } });
    }
    await bomb.release();
  }

  test('of processes end at the limit', async () => {
    const bomb = await den.bomb(['processes', '400'], sandbox);
    expect(bombsOnHost().length).toBeGreaterThan(1);
    await expectHostUnharmed(bomb, LIMITS.pids);
  });

  test('of descriptors end at the limit', async () => {
    await expectHostUnharmed(await den.bomb(['descriptors', '5000'], sandbox), LIMITS.openFiles);
  });

  test('of terminals leave the host its own', async () => {
    await expectHostUnharmed(await den.bomb(['terminals', '5000'], sandbox), LIMITS.openFiles);
  });

  test('of pipes leave the host its own', async () => {
    await expectHostUnharmed(await den.bomb(['pipes', '5000'], sandbox), LIMITS.openFiles);
  });

  test('of watchers leave the host its own', async () => {
    // By two processes: one alone is held back by its descriptors before it has all that a user may have.
    const count = differs(world, ['bomb', 'watches']) ? '8' : '5000';
    const first = await den.bomb(['watches', count], sandbox);
    await expectHostUnharmed(await den.bomb(['watches', count], sandbox), LIMITS.openFiles);
    await first.release();
  });

  test.each(['private', 'shared', 'unmapped'])('of %s megabytes are ended or refused', async (kind) => {
    const before = freemem();
    const bomb = await den.bomb([kind, '512'], sandbox);
    const isRefused = bomb.taken !== null && bomb.taken < LIMITS.memoryMb;
    const { signal } = await (isRefused ? bomb.release() : bomb.ended());
    expect(signal).toBe(isRefused ? null : 'SIGKILL');
    // Others use the machine too: what must not stay missing is what the bomb asked for.
    await until(() => before - freemem() < 400 * MEBIBYTE);
  });

  // In a container, /run is on disk.
  const inMemory = ['/dev/shm', '/dev', ...(world.backend === 'namespaces' ? ['/run'] : [])];
  test.each(inMemory)('of memory written to %s are ended or refused', async (folder) => {
    const bomb = await den.bomb(['disk', '512', `${folder}/bomb`], sandbox).catch(() => null);
    expect(bomb?.taken ?? 0).toBeLessThanOrEqual(LIMITS.memoryMb);
    await bomb?.release().catch(() => {});
  });

  test('of bytes are ended at the limit of the workspace', async () => {
    const bomb = await den.bomb(['disk', '128', '/workspace/bomb'], sandbox);
    await expect(bomb.ended()).rejects.toMatchObject({ code: 'LIMIT_EXCEEDED' });
  });

  test('of folders within folders go with the sandbox', async () => {
    const bomb = await den.bomb(['depth', '2000', '/workspace'], sandbox);
    expect(bomb.taken).toBe(2000);
    await bomb.release();
    await den.ask('close', sandbox);
    if (world.backend === 'namespaces') await until(() => leftOnHost(den.state).length === 0);
  });

  test('of files go with the sandbox', async () => {
    await den.ask('exec', sandbox, ['mkdir', '/workspace/many'], {});
    const bomb = await den.bomb(['files', '5000', '/workspace/many'], sandbox);
    expect(bomb.taken).toBe(5000);
    await bomb.release();
  });
});
