// Whole trees between the host's disk and a container: one big file, many small ones, and real trees, which must come back as
// they were.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { compare, summary, timed } from '../measure.mjs';
import { output } from '../program.mjs';
import { labelsOf } from '../ring.mjs';
import { inFolder } from '../scratch.mjs';
import { randomBytes } from './files.mjs';

const CARRIER = fileURLToPath(new URL('../tree-carrier.mjs', import.meta.url));
const BIG_BYTES = 500_000_000;
const SMALL_FILES = 10_000;
const SMALL_BYTES = 1_000;
const PER_FOLDER = 100;

/** What npm installed, and Debian's own documentation, icons and what not: nobody writes to them meanwhile. */
const REAL_TREES = [fileURLToPath(new URL('../../node_modules', import.meta.url)), '/usr/share'];

export async function trees({ contestants, planned, quick, runId }) {
  return inFolder('trees', async (home) => {
    const able = contestants.filter((contestant) => contestant.upload);
    const rows = [];
    const plan = planned({ rounds: 5 });
    for (const { id, title, from } of [bigFile(home, quick), smallFiles(home, quick)]) {
      let number = 0;
      // To a new place each time, and nothing is removed meanwhile: for a minute, ext4 looks for inodes that were not deleted
      // just now, and all would be measured by that.
      const up = (contestant) => timed(() => contestant.upload(from, `${id}-${number++}`));
      const down = (contestant) => timed(() => contestant.download(`${id}-kept`, path.join(home, `${id}-${number++}`)));
      const sync = (contestant) => timed(() => contestant.sync(from, `${id}-kept`));
      for (const contestant of able) await contestant.upload(from, `${id}-kept`);
      const ours = able.filter((contestant) => contestant.sync);
      rows.push({ id: `upload-${id}`, title: `upload ${title}`, unit: 'ms', values: await compare(able, up, plan) });
      rows.push({
        id: `download-${id}`,
        title: `download ${title}`,
        unit: 'ms',
        values: await compare(able, down, plan),
      });
      rows.push({
        id: `sync-${id}`,
        title: `  nothing changed, sync`,
        unit: 'ms',
        values: await compare(ours, sync, plan),
      });
    }
    const growths = [];
    const times = [];
    let right = 0;
    for (const tree of REAL_TREES.filter((folder) => existsSync(folder))) {
      const back = path.join(home, 'real');
      const { ms, growthBytes, same } = await roundTrip(tree, back, runId);
      growths.push(growthBytes / 1024 ** 2);
      times.push(ms);
      right += same;
      rmSync(back, { recursive: true, force: true });
    }
    const row = (id, title, unit, samples) => ({ id, title, unit, values: { cofferdam: summary(samples) } });
    const real = row('trees', 'node_modules and /usr/share, in and out again', 'ms', times);
    rows.push({ ...real, values: { cofferdam: { ...real.values.cofferdam, right } } });
    rows.push(row('trees-memory', '  peak growth of memory', 'MiB', growths));
    return rows;
  });
}

function bigFile(home, quick) {
  const bytes = quick ? BIG_BYTES / 10 : BIG_BYTES;
  const from = path.join(home, 'big');
  writeFileSync(from, randomBytes(bytes));
  return { id: 'big', title: `one file of ${bytes / 1e6} MB`, from };
}

function smallFiles(home, quick) {
  const count = quick ? SMALL_FILES / 10 : SMALL_FILES;
  const from = path.join(home, 'small');
  for (let folder = 0; folder < count / PER_FOLDER; folder += 1) {
    mkdirSync(path.join(from, `${folder}`), { recursive: true });
    for (let file = 0; file < PER_FOLDER; file += 1) {
      writeFileSync(path.join(from, `${folder}`, `${file}`), randomBytes(SMALL_BYTES));
    }
  }
  return { id: 'small', title: `${count.toLocaleString('en')} files of 1 KB`, from };
}

async function roundTrip(tree, back, runId) {
  const before = look(tree);
  const result = JSON.parse(
    await output(process.execPath, [CARRIER, JSON.stringify(labelsOf(runId)), 'tree', tree, back]),
  );
  const after = look(back);
  for (const [name, what] of before) assert.equal(after.get(name), what, `${tree}: ${JSON.stringify(name)}`);
  assert.equal(after.size, before.size, `${tree}: something more came back`);
  return { ...result, same: before.size };
}

/** Content, mode, time and target of everything below a folder, by path; names are bytes, not all of them are text. */
function look(root) {
  const seen = new Map();
  const pending = [Buffer.from(root.replace(/\/$/, ''))];
  const skip = pending[0].length;
  while (pending.length > 0) {
    const place = pending.pop();
    const stat = lstatSync(place, { bigint: true });
    // Sockets and the like are skipped, and told so.
    if (!stat.isFile() && !stat.isDirectory() && !stat.isSymbolicLink()) continue;
    let what = `${stat.mode & 0o777n} ${stat.mtimeNs}`;
    if (stat.isSymbolicLink()) what = `-> ${readlinkSync(place, 'latin1')} ${stat.mtimeNs}`;
    if (stat.isFile()) what += ` ${stat.size} ${digest(place)}`;
    seen.set(place.subarray(skip).toString('latin1'), what);
    if (!stat.isDirectory()) continue;
    for (const name of readdirSync(place, 'buffer')) pending.push(Buffer.concat([place, Buffer.from('/'), name]));
  }
  return seen;
}

function digest(file) {
  return createHash('md5').update(readFileSync(file)).digest('hex');
}
