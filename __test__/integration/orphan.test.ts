import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { describeWithEngine, IMAGES, testManager } from '../support';

const HOST = `
  const { SandboxManager } = require(${JSON.stringify(path.resolve(__dirname, '../../dist/index.js'))});
  (async () => {
    const manager = new SandboxManager({ orphanTimeoutMs: 500 });
    const sandbox = await manager.open({ image: ${JSON.stringify(IMAGES.alpine)} });
    await sandbox.spawn('sleep 1000', { detached: true });
    console.log(sandbox.id);
    setInterval(() => {}, 1000);
  })();
`;

describeWithEngine('a host program that is killed', () => {
  test('leaves a sandbox that another program can adopt, and that ends by itself once nobody is there', async () => {
    const manager = testManager();
    const host = spawn(process.execPath, ['-e', HOST], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(host.stdout, 'data');
    const id = String(line).trim();
    const sandbox = await manager.get(id);
    host.kill('SIGKILL');
    await once(host, 'exit');
    expect((await sandbox.exec('echo adopted')).stdout).toBe('adopted\n');
    // We are linked, so it stays past the orphan timeout.
    await sandbox.exec('sleep 1');
    expect((await manager.list()).map((info) => info.id)).toContain(id);
    await manager.close();
    const watcher = testManager();
    while ((await watcher.list()).some((info) => info.id === id))
      await new Promise((resolve) => setTimeout(resolve, 50));
  });
});
