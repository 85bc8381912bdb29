import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { testManager } from '../support';
import { refused, tools } from '../tools/toolbox';
import { describeWorlds, WORLDS } from './worlds';

const own = WORLDS.filter(({ backend, uid }) => backend === 'namespaces' && uid === process.getuid?.());

// On an engine a folder is no image; here it could be one.
describeWorlds(
  'a folder of the host as an image',
  ({ backend }) => {
    const manager = testManager({ backend });
    const folder = mkdtempSync(path.join(os.tmpdir(), 'cofferdam-secrets-'));
    writeFileSync(path.join(folder, 'secret'), 'not for models');
    afterAll(() => rmSync(folder, { recursive: true }));

    test('is not for a model to choose', async () => {
      const toolset = tools(manager, { image: 'host' });
      for (const image of [folder, `${folder}/`, `/..${folder}`, '/root', '/etc']) {
        await refused(toolset, 'sandbox_open', { image });
      }
    });
  },
  own,
);
