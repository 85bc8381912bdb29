/**
 * `cofferdam __complete`: called by the completion scripts of shells at each Tab.
 *
 * Invariant: fast, and silent on errors: a person is typing.
 */
import { setTimeout } from 'node:timers/promises';
import { type Finder, offer } from '../candidates';
import { command, EXIT } from '../command';
import { COMMANDS } from '../commands';
import { managerFrom } from '../engine';
import { findSandbox } from '../find';
import { print } from '../print';
import { scopeFrom } from '../sandbox-options';

/** Longer than a local engine takes, and as long as a person waits. */
const TIMEOUT_MS = 1_500;

export const complete = command({
  name: '__complete',
  summary: 'Print the completions at the cursor, for shells',
  hidden: true,
  tail: { name: 'word', optional: true, many: true },
  flags: {},
  examples: [{ line: 'cofferdam __complete -- exec ""', about: 'Sandboxes' }],
  async run({ tail }) {
    const { candidates, paths = '' } = await offer(COMMANDS, tail, finder);
    for (const { word, about } of candidates) print(about === '' ? word : `${word}\t${about}`);
    print(`:${paths}`);
    return EXIT.ok;
  },
});

const finder: Finder = {
  /** Names that people type first, then ids. */
  async sandboxes(engine) {
    const open = (await quick(async () => managerFrom(engine).list())) ?? [];
    const own = `user:${scopeFrom(undefined).user}:`;
    const living = open.filter(({ state }) => state !== 'warm');
    return [
      ...living
        .filter(({ key }) => key.startsWith(own))
        .map(({ key, image }) => ({ word: key.slice(own.length), about: image })),
      ...living.map(({ id, key }) => ({ word: id, about: key })),
    ];
  },

  async inside(engine, name, folder) {
    const list = async () => (await findSandbox(managerFrom(engine), name)).files.list(folder);
    const entries = (await quick(list)) ?? [];
    return entries.map(({ name, type }) => (type === 'dir' ? `${name}/` : name));
  },
};

/** Undefined if it takes too long or fails. */
async function quick<T>(ask: () => Promise<T>): Promise<T | undefined> {
  const late = setTimeout(TIMEOUT_MS, undefined);
  return Promise.race([ask(), late]).catch(() => undefined);
}
