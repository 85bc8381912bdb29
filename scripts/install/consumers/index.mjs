// Everybody who is to be served, in the order of the table. Electron is not among them: its package has no program inside,
// and downloads one when it is installed.

import { bundlers } from './bundlers.mjs';
import { command } from './command.mjs';
import { declarations } from './declarations.mjs';
import { node } from './node.mjs';
import { packageManagers } from './package-managers.mjs';
import { runtimes } from './runtimes.mjs';
import { testRunners } from './test-runners.mjs';
import { typescript } from './typescript.mjs';

/** @typedef {{ name: string, version: string, visit: (ground: import('../ground.mjs').Ground) => Promise<void> }} Consumer */

/** @type {Consumer[]} */
export const CONSUMERS = [
  ...node,
  ...typescript,
  ...testRunners,
  ...runtimes,
  ...bundlers,
  ...packageManagers,
  ...command,
  ...declarations,
];
