// Everything at once in one sandbox: 200 commands started together, and two files of 50 MB on their way in and out.

import assert from 'node:assert/strict';
import { summary, timed } from '../measure.mjs';
import { randomBytes } from './files.mjs';

const COMMANDS = 200;
const FILE_BYTES = 50_000_000;

export async function together({ ours, planned }) {
  const samples = [];
  let right = Number.POSITIVE_INFINITY;
  for (let round = 0; round < planned({ rounds: 3 }).rounds; round += 1) {
    const sandbox = await ours.sandbox();
    const contents = [randomBytes(FILE_BYTES), randomBytes(FILE_BYTES)];
    const commands = Array.from({ length: COMMANDS }, (_, index) => index);
    let done = 0;
    samples.push(
      await timed(() =>
        Promise.all(
          [
            ...contents.map((content, index) => thereAndBack(sandbox, `file-${index}.bin`, content)),
            ...commands.map((index) => sayNumber(sandbox, index)),
          ].map(async (work) => {
            await work;
            done += 1;
          }),
        ),
      ),
    );
    right = Math.min(right, done);
    await sandbox.close();
  }
  const title = '200 execs + 2 × 50 MB both ways';
  return [{ id: 'together', title, unit: 'ms', values: { cofferdam: { ...summary(samples), right } } }];
}

async function thereAndBack(sandbox, name, content) {
  await sandbox.files.write(name, content);
  const { bytes } = await sandbox.files.read(name, { maxBytes: content.length });
  assert.ok(content.equals(bytes), `"${name}" came back different`);
}

async function sayNumber(sandbox, index) {
  const { exitCode, stdout } = await sandbox.exec(['sh', '-c', `echo ${index}`]);
  assert.deepEqual({ exitCode, stdout }, { exitCode: 0, stdout: `${index}\n` });
}
