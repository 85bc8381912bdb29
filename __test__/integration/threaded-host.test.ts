import path from 'node:path';
import { describeOnNamespaces, program } from '../support';

const THREADS = 8;
const OPENS_PER_THREAD = 125;
const AT_ONCE = 5;

/** One thread's work. */
const WORK = `
  const { parentPort } = require('node:worker_threads');
  const { SandboxManager } = require(${JSON.stringify(path.resolve(__dirname, '../../dist/index.js'))});
  (async () => {
    const manager = new SandboxManager({ defaults: { image: 'host' } });
    let answers = 0;
    for (let round = 0; round < ${OPENS_PER_THREAD / AT_ONCE}; round++) {
      const opening = Array.from({ length: ${AT_ONCE} }, () => manager.open({ session: 'isolated' }));
      for (const sandbox of await Promise.all(opening)) {
        if ((await sandbox.exec('echo up')).stdout === 'up\\n') answers++;
        await sandbox.close();
      }
    }
    await manager.close();
    parentPort.postMessage(answers);
  })();
`;

describeOnNamespaces('a large host program with many threads, on namespaces', () => {
  test('opens a thousand sandboxes from eight threads, with 500 MB in its memory, and never hangs', async () => {
    const { ended } = program(`
      const { Worker } = require('node:worker_threads');
      const ballast = Array.from({ length: 50 }, () => Buffer.alloc(10 * 2 ** 20, 1));
      const thread = () => new Promise((resolve, reject) => {
        const worker = new Worker(${JSON.stringify(WORK)}, { eval: true });
        worker.once('message', resolve).once('error', reject);
      });
      const answers = await Promise.all(Array.from({ length: ${THREADS} }, thread));
      console.log(answers.reduce((sum, count) => sum + count, 0), ballast.length);
    `);
    expect(await ended).toMatchObject({ code: 0, output: `${THREADS * OPENS_PER_THREAD} 50\n` });
  }, 300_000);
});
