import { parentPort, workerData } from 'node:worker_threads';
import * as cofferdam from 'cofferdam';
import { visit } from './visit.cjs';

if (workerData === 'visit') {
  await visit(cofferdam);
  parentPort.postMessage('visited');
} else {
  const manager = new cofferdam.SandboxManager();
  const sandbox = await manager.open({ image: process.env.COFFERDAM_INSTALL_IMAGE });
  const endless = await sandbox.spawn('while :; do echo tick; sleep 0.01; done');
  for await (const _ of endless) parentPort.postMessage({ id: sandbox.id });
}
