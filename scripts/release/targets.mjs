// The targets of a release, all told by `napi.targets` of package.json: what Rust calls them, what Node calls them, and
// the files and packages that belong to them. Nothing else in the scripts knows a list of targets.

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../workspace.mjs';

export const manifest = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));

/** What the scripts make: guests, addons and packages, each in a folder of its own. */
export const OUT = path.join(ROOT, 'release');

/** The oldest glibc that the addons for it run on: that of Node's own unofficial builds for old systems. */
export const GLIBC_FLOOR = '2.17';

const SYSTEMS = { linux: ['linux', 'Linux'], darwin: ['darwin', 'macOS'], windows: ['win32', 'Windows'] };
const PROCESSORS = { x86_64: 'x64', aarch64: 'arm64' };
const LIBCS = { gnu: 'glibc', musl: 'musl' };

/**
 * For Windows, another system can only build a stand-in with the ABI of GNU: good for finding out that everything
 * compiles and links, never published.
 */
const STAND_INS = {
  'x86_64-pc-windows-msvc': 'x86_64-pc-windows-gnu',
  'aarch64-pc-windows-msvc': 'aarch64-pc-windows-gnullvm',
};

/** @typedef {ReturnType<typeof describe>} Target */
export const TARGETS = manifest.napi.targets.map(describe);

/** The architectures of Linux that a guest is built for; every addon carries all of them. */
export const GUESTS = Object.entries(PROCESSORS).map(([rust, cpu]) => ({
  cpu,
  rust: `${rust}-unknown-linux-gnu`,
  variable: `COFFERDAM_GUEST_${cpu.toUpperCase()}`,
  file: path.join(OUT, 'guests', `guest-${cpu}`),
}));

function describe(rust) {
  const [processor, , system, abi] = rust.split('-');
  const [os, title] = SYSTEMS[system] ?? [];
  const cpu = PROCESSORS[processor];
  if (!os || !cpu)
    throw new Error(`package.json has the target ${rust}, and scripts/release/targets.mjs cannot name it`);
  const name = [os, cpu, abi].filter(Boolean).join('-');
  const libc = os === 'linux' ? LIBCS[abi] : undefined;
  return {
    rust,
    /** What is built for it on a machine of another system. */
    elsewhere: STAND_INS[rust] ?? rust,
    name,
    os,
    cpu,
    libc,
    title: `${title} on ${cpu}${libc ? ` with ${libc}` : ''}`,
    package: `${manifest.name}-${name}`,
    addon: `${manifest.napi.binaryName}.${name}.node`,
  };
}

/** @returns {Target} by its name of either kind */
export function target(name) {
  const found = TARGETS.find((each) => each.rust === name || each.name === name);
  if (found) return found;
  throw new Error(`there is no target "${name}". Targets: ${TARGETS.map((each) => each.name).join(', ')}`);
}

/** This machine's own; nothing where none is for it. */
export const OWN = TARGETS.find(
  ({ os, cpu, libc }) => os === process.platform && cpu === process.arch && libc !== 'musl',
);

/** As few as show every system, processor and C library that this machine's own target is not for. */
export function representatives() {
  const traits = ({ os, cpu, libc }) => [os, cpu, libc].filter(Boolean);
  const seen = new Set(OWN ? traits(OWN) : []);
  const news = (target) => traits(target).filter((trait) => !seen.has(trait)).length;
  const chosen = [];
  for (;;) {
    const best = TARGETS.toSorted((a, b) => news(b) - news(a))[0];
    if (news(best) === 0) return chosen;
    chosen.push(best);
    for (const trait of traits(best)) seen.add(trait);
  }
}
