import { createWriteStream, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import Docker from 'dockerode';
import { describeOnNamespaces, program, unlessMissing } from '../support';

// Only an engine can say what it saves, and only root has one here.
const hasEngine = existsSync('/var/run/docker.sock') && process.getuid?.() === 0;
const describeWithArchives = unlessMissing(hasEngine ? undefined : 'it takes root and an engine', describeOnNamespaces);

describeWithArchives('a file of docker save as an image, on namespaces', () => {
  let folder: string;
  let archive: string;

  // Here, because a suite that is skipped cleans nothing up.
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-images-'));
    archive = path.join(folder, 'alpine.tar');
    await pipeline(await new Docker().getImage('alpine:3.19').get(), createWriteStream(archive));
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Opens a sandbox in a program whose image store is ours alone; native code sees only its own environment. */
  async function opened(image: string): Promise<unknown> {
    const { ended } = program(
      `
        const manager = new SandboxManager();
        const sandbox = await manager.open({ image: ${JSON.stringify(image)}, pull: 'never' }).catch((error) => error);
        if (sandbox.code) console.log(JSON.stringify({ code: sandbox.code }));
        else {
          const { stdout } = await sandbox.exec('echo $PATH; echo mine > /etc/issue; cat /etc/issue');
          console.log(JSON.stringify({ image: sandbox.image, stdout }));
        }
        await manager.close();
      `,
      { COFFERDAM_IMAGES: path.join(folder, 'store') },
    );
    return JSON.parse((await ended).output);
  }

  test('can be opened by its path, and from then on by the name in it', async () => {
    expect(await opened('alpine:3.19')).toEqual({ code: 'IMAGE_NOT_FOUND' });
    const stdout = expect.stringMatching(/^\/usr\/local\/sbin:.*\nmine\n$/);
    expect(await opened(archive)).toEqual({ image: archive, stdout });
    expect(await opened('alpine:3.19')).toEqual({ image: 'alpine:3.19', stdout });
  });
});
