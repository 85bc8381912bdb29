import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import * as cofferdam from 'cofferdam';
import { describeWithEngine, IMAGES } from '../support';

const run = promisify(execFile);
const cwd = path.resolve(__dirname, '../..');
const node = async (...args: string[]) => (await run(process.execPath, args, { cwd, timeout: 60_000 })).stdout;

describe('the package', () => {
  test('exports the same names to CommonJS and to ES modules', async () => {
    const names = Object.keys(cofferdam).sort();
    expect(names).toEqual(['Process', 'Sandbox', 'SandboxError', 'SandboxManager', 'Terminal', 'version']);
    const esm = "import * as all from 'cofferdam'; console.log(Object.keys(all).sort().join())";
    expect(await node('--input-type=module', '-e', esm)).toBe(`${names.join()}\n`);
  });

  test('has one class of error, however it was imported', async () => {
    const script =
      "const { SandboxError } = require('cofferdam'); import('cofferdam').then((esm) => console.log(esm.SandboxError === SandboxError))";
    expect(await node('-e', script)).toBe('true\n');
  });

  test.each(['index', 'testing/index'])('declares in dist/%s.d.ts only what is shipped with it', (entry) => {
    const waiting = [path.join(cwd, `dist/${entry}.d.ts`)];
    const seen = new Set<string>();
    for (let file = waiting.pop(); file; file = waiting.pop()) {
      if (seen.has(file)) continue;
      seen.add(file);
      for (const [, target] of readFileSync(file, 'utf8').matchAll(/from '(\.[^']*)'/g)) {
        waiting.push(path.resolve(path.dirname(file), `${target}.d.ts`));
      }
      expect(readFileSync(file, 'utf8')).not.toMatch(/from '@opentelemetry|internal\/binding/);
    }
    expect(seen.size).toBeGreaterThan(5);
  });

  test('carries the version of package.json', () => {
    expect(cofferdam.version).toBe(require('../../package.json').version);
  });
});

describeWithEngine('a program', () => {
  test('ends by itself once its manager is closed', async () => {
    const script = `
      const { SandboxManager } = require('cofferdam');
      (async () => {
        const manager = new SandboxManager();
        const sandbox = await manager.open({ image: ${JSON.stringify(IMAGES.alpine)} });
        const loop = await sandbox.spawn('while :; do echo tick; sleep 0.05; done');
        for await (const chunk of loop) break;
        await manager.close();
        console.log('closed');
      })();`;
    expect(await node('-e', script)).toBe('closed\n');
  });

  test('closes a sandbox with await using', async () => {
    await using manager = new cofferdam.SandboxManager();
    let id: string;
    {
      await using sandbox = await manager.open({ image: IMAGES.alpine });
      id = sandbox.id;
      expect((await manager.list()).map((info) => info.id)).toContain(id);
    }
    expect((await manager.list()).map((info) => info.id)).not.toContain(id);
  });
});
