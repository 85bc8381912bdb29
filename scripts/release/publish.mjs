// Publishes packed packages with a statement of provenance: `npm run release:publish -- <folder> [--dry-run]`.
//
// The main package goes last, when all that it depends on is there. What is already published is left out, so that a
// release that broke half-way is finished by running it again.

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { manifest, OUT, TARGETS } from './targets.mjs';

const { values, positionals } = parseArgs({ options: { 'dry-run': { type: 'boolean' } }, allowPositionals: true });
const folder = path.resolve(positionals[0] ?? path.join(OUT, 'packages'));
const tag = process.env.GITHUB_REF_TYPE === 'tag' ? process.env.GITHUB_REF_NAME : undefined;
if (tag && tag !== `v${manifest.version}`) {
  throw new Error(`the tag is ${tag}, and package.json is of version ${manifest.version}: tag what you release`);
}

const names = [...TARGETS.map((target) => target.package), manifest.name];
const files = names.map((name) => `${name}-${manifest.version}.tgz`);
const missing = files.filter((file) => !readdirSync(folder).includes(file));
if (missing.length) throw new Error(`${folder} lacks ${missing.join(', ')}: pack with --complete first`);

for (const [index, name] of names.entries()) {
  if (isPublished(name)) {
    console.log(`${name}@${manifest.version} is published already`);
    continue;
  }
  // A pre-release must not become what `npm install` gives to everybody.
  const channel = manifest.version.includes('-') ? 'next' : 'latest';
  // A statement of provenance is the workflow's to make; by hand there is none.
  const how = values['dry-run'] ? ['--dry-run'] : process.env.GITHUB_ACTIONS ? ['--provenance'] : [];
  npm('publish', path.join(folder, files[index]), '--access', 'public', '--tag', channel, '--ignore-scripts', ...how);
}

function isPublished(name) {
  try {
    const found = execFileSync('npm', ['view', `${name}@${manifest.version}`, 'version'], { stdio: 'pipe' });
    return found.toString().trim() !== '';
  } catch (error) {
    if (/E404/.test(error.stderr)) return false;
    throw error;
  }
}

function npm(...args) {
  execFileSync('npm', args, { stdio: 'inherit' });
}
