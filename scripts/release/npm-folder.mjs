// `npm/`: the package of each target, but for its addon. `npm run release:npm` writes it anew, after a change of the
// targets or of the version.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../workspace.mjs';
import { isMain } from './main.mjs';
import { manifest, TARGETS } from './targets.mjs';

export const NPM = path.join(ROOT, 'npm');

/** The files of a target's package, by name, as `npm/` must have them. */
export function filesOf(target) {
  const { title, package: name, addon, os, cpu, libc } = target;
  const about = `The native addon of ${manifest.name} for ${title}`;
  const json = {
    name,
    version: manifest.version,
    description: about,
    license: manifest.license,
    main: addon,
    files: [addon],
    os: [os],
    cpu: [cpu],
    ...(libc && { libc: [libc] }),
    engines: manifest.engines,
  };
  const readme = `# ${name}\n\n${about}. It comes with \`npm install ${manifest.name}\`: nobody installs it by hand.\n`;
  return { 'package.json': `${JSON.stringify(json, null, 2)}\n`, 'README.md': readme };
}

if (isMain(import.meta.url)) {
  rmSync(NPM, { recursive: true, force: true });
  for (const target of TARGETS) {
    const home = path.join(NPM, target.name);
    mkdirSync(home, { recursive: true });
    for (const [file, text] of Object.entries(filesOf(target))) writeFileSync(path.join(home, file), text);
  }
  console.log(`npm/ has ${TARGETS.length} packages of version ${manifest.version}`);
}
