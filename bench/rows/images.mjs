// The same work on the Debian-class, the Alpine-class and the empty image: files, and a static program written and run.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { GUEST_BINARY } from '../guest-binary.mjs';
import { summary, timed } from '../measure.mjs';

const IMAGES = ['ubuntu:22.04', 'alpine:3.19', 'cofferdam/empty:latest'];

export async function images({ ours }) {
  const program = readFileSync(GUEST_BINARY);
  const took = [];
  for (const image of IMAGES) {
    const sandbox = await ours.sandbox({ image });
    try {
      took.push(await timed(() => work(sandbox, program)));
    } catch (error) {
      error.message = `${image}: ${error.message}`;
      throw error;
    } finally {
      await sandbox.close();
    }
  }
  return [
    {
      id: 'images',
      title: 'the same on 3 kinds of image',
      unit: 'ms',
      values: { cofferdam: { ...summary(took), right: took.length } },
    },
  ];
}

async function work(sandbox, program) {
  const { files } = sandbox;
  await files.write('deep/er/note.txt', 'hällo');
  assert.equal(await files.readText('deep/er/note.txt'), 'hällo');
  await files.copy('deep', 'copy');
  await files.move('copy/er/note.txt', 'moved.txt');
  assert.equal((await files.stat('moved.txt')).sizeBytes, 6);
  assert.deepEqual(
    (await files.list('.', { recursive: true })).map(({ name }) => name),
    ['copy', 'er', 'deep', 'er', 'note.txt', 'moved.txt'],
  );
  assert.equal(await files.remove('deep', { recursive: true }), true);
  assert.equal(await files.exists('deep/er/note.txt'), false);

  // Any static program would do; this one needs nothing, says how it is used, and exits with 1.
  await files.write('program', program, { mode: 0o755 });
  const { exitCode, stderr } = await sandbox.exec([`${sandbox.workdir}/program`]);
  assert.equal(exitCode, 1);
  assert.match(stderr, /usage/);
}
