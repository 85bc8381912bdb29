import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeWithOwnEngine, OwnEngine } from '../own-engine';
import { IMAGES } from '../support';
import { afterMounting, describeAsRoot, finding, report } from './doctor-program';

const withNamespaces = process.env.COFFERDAM_NO_NAMESPACES ? test.skip : test;

/** Until not a byte more fits. */
function fill(folder: string): void {
  for (let size = 1 << 22; size >= 1; size >>= 1) {
    for (let count = 0; ; count += 1) {
      try {
        writeFileSync(path.join(folder, `filler-${size}-${count}`), Buffer.alloc(size));
      } catch {
        rmSync(path.join(folder, `filler-${size}-${count}`), { force: true });
        break;
      }
    }
    if (size <= 4096) break;
  }
}

describeWithOwnEngine('doctor on a full disk of the engine', () => {
  test('names the folder, and what makes room', async () => {
    await using engine = await OwnEngine.start(IMAGES.alpine, { dataMb: 96 });
    const env = { DOCKER_HOST: engine.host };
    const words = ['--image', IMAGES.alpine];
    expect(await report({ env }, words)).toMatchObject({ code: 0, ok: true, backend: 'docker' });
    fill(engine.data);
    const found = await report({ env }, words);
    expect(found).toMatchObject({ code: 1, ok: false });
    expect(finding(found, 'disk.engine')).toMatchObject({
      state: 'problem',
      text: expect.stringMatching(/^the disk is full: .* free in /),
      cure: 'docker system prune',
      facts: { folder: engine.data },
    });
    expect(finding(found, 'sandboxes.docker')).toMatchObject({
      state: 'problem',
      text: expect.stringMatching(/the disk is full: .*no space left on device/),
      cure: 'docker system prune',
    });
  });
});

describeAsRoot('doctor on full disks of this machine', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-full-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** A small disk that belongs to one program, with nothing free on it. */
  const onFullDisk = (options: string, filler: string) =>
    afterMounting(`mount -t tmpfs -o ${options} tmpfs ${folder}; ${filler}`);
  const bytes = onFullDisk('size=64k', `cat /dev/zero > ${folder}/filler 2> /dev/null || true`);

  withNamespaces('the state folder of namespaces', async () => {
    const found = await report({ by: bytes, env: { COFFERDAM_STATE: `${folder}/state` } }, ['--backend', 'namespaces']);
    expect(found).toMatchObject({ code: 1, ok: false });
    const unwell = found.findings.filter(({ state }) => state === 'problem');
    expect(unwell[0]).toMatchObject({
      text: expect.stringContaining('full'),
      cure: 'npx cofferdam prune --backend namespaces',
    });
  });

  test('temporary files: a warning', async () => {
    const found = await report({ by: bytes, env: { TMPDIR: folder, DOCKER_HOST: 'nonsense' } });
    expect(finding(found, 'disk.tmp')).toMatchObject({
      state: 'warning',
      text: expect.stringMatching(/^the disk is full: 0 B free/),
      cure: `du -xsh ${folder}/* | sort -h`,
      facts: { freeBytes: 0 },
    });
  });

  test('no inodes left, with bytes to spare', async () => {
    const by = onFullDisk(
      'size=2g,nr_inodes=10',
      `for name in 1 2 3 4 5 6 7 8 9 10; do touch ${folder}/$name 2> /dev/null || true; done`,
    );
    const found = await report({ by, env: { TMPDIR: folder, DOCKER_HOST: 'nonsense' } });
    expect(finding(found, 'disk.tmp')).toMatchObject({
      state: 'warning',
      text: expect.stringContaining('out of inodes'),
      facts: { freeInodes: 0 },
    });
  });
});
