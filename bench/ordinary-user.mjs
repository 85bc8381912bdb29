// The process of a user without a direct link: prints the rows of commands and files, ours against dockerode.
//
//   COFFERDAM_SHORTCUT=off node bench/ordinary-user.mjs <run id> <quick | whole>

import assert from 'node:assert/strict';
import { contestant } from './contestants/index.mjs';
import { planner } from './measure.mjs';
import { exec } from './rows/exec.mjs';
import { files } from './rows/files.mjs';

assert.equal(process.env.COFFERDAM_SHORTCUT, 'off', 'links of this process must go through the engine');
const [runId, extent] = process.argv.slice(2);
const contestants = ['cofferdam', 'dockerode'].map((id) => contestant(id, runId));
try {
  await Promise.all(contestants.map((one) => one.start()));
  const ring = { contestants, planned: planner(extent === 'quick') };
  console.log(JSON.stringify([...(await exec(ring)), ...(await files(ring))]));
} finally {
  await Promise.all(contestants.map((one) => one.stop()));
}
