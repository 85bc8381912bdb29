// Several threads at once, each with a manager of its own; two of them are terminated in the middle of a command. Neither
// may hurt the others or the program, and what they had open ends with the program.
import { Worker } from 'node:worker_threads';
import * as cofferdam from 'cofferdam';
import { visit } from './visit.cjs';

const thread = (task) => new Worker(new URL('./thread.mjs', import.meta.url), { workerData: task });
const said = (worker) =>
  new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject).once('exit', resolve));

const [cut, another, ...whole] = ['hang', 'hang', 'visit', 'visit', 'visit'].map(thread);
const visits = Promise.all(whole.map(said));
for (const worker of [cut, another]) {
  const message = await said(worker);
  if (!message?.id) throw new Error(`a thread was to hang, and ended with ${message}`);
  console.log(`visited ${message.id}`);
  await worker.terminate();
}
for (const message of await visits) if (message !== 'visited') throw new Error(`a thread ended with ${message}`);
await visit(cofferdam);
