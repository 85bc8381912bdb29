// Gets the standard library of all that Linux builds: quicker than compiling it along.

import { execFileSync } from 'node:child_process';
import { GUESTS, TARGETS } from './targets.mjs';

const wanted = new Set([...GUESTS.map(({ rust }) => rust), ...TARGETS.map(({ elsewhere }) => elsewhere)]);
execFileSync('rustup', ['target', 'add', ...wanted], { stdio: 'inherit' });
