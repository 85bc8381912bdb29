import { spawnSync } from 'node:child_process';
import path from 'node:path';

const ROOT = path.resolve(__dirname, '../..');

test('the page on the command line has the reference that the commands make (npm run docs:cli)', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/cli-docs.mjs', '--check'], { cwd: ROOT });
  expect([status, stderr.toString()]).toEqual([0, '']);
});
