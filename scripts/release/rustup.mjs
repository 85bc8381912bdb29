// Gets the standard library of every target that this machine's rustup has one for: quicker than compiling it along.

import { execFileSync } from 'node:child_process';
import { GUESTS, TARGETS } from './targets.mjs';

const wanted = new Set([...GUESTS, ...TARGETS].map(({ rust }) => rust));
execFileSync('rustup', ['target', 'add', ...wanted], { stdio: 'inherit' });
