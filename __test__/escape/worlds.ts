/** Where the suite runs: each backend that this machine has, by each kind of user who may run it. */

export interface World {
  name: string;
  backend: 'docker' | 'namespaces';
  image: string;
  /** Who runs the program that opens sandboxes. */
  uid: number;
}

/** Nobody's on this machine. */
const ORDINARY_UID = 61_234;

const own = process.getuid?.() ?? 0;
const docker: World = { name: 'docker', backend: 'docker', image: 'ubuntu:22.04', uid: own };
const namespaces = (name: string, uid: number): World => ({ name, backend: 'namespaces', image: 'host', uid });

/** Only root can also be somebody else. */
function namespaceWorlds(): World[] {
  const ordinary = namespaces('namespaces, run by an ordinary user', own === 0 ? ORDINARY_UID : own);
  return own === 0 ? [namespaces('namespaces, run by root', 0), ordinary] : [ordinary];
}

const { COFFERDAM_NO_ENGINE, COFFERDAM_NO_NAMESPACES } = process.env;

/** What a machine cannot have, `scripts/test.mjs` says loudly. */
export const WORLDS: World[] = [
  ...(COFFERDAM_NO_ENGINE ? [] : [docker]),
  ...(COFFERDAM_NO_NAMESPACES || process.platform !== 'linux' ? [] : namespaceWorlds()),
];

/** One suite per world. Where there is none, a suite that is not run says so by its name. */
export function describeWorlds(title: string, body: (world: World) => void, worlds = WORLDS): void {
  if (worlds.length === 0) describe.skip(`${title}: no such backend here`, () => test('is not tried', () => {}));
  for (const world of worlds) describe(`${title}: ${world.name}`, () => body(world));
}

/**
 * Where container engines differ by design, by the attempt's words, and why that is no way out. All else must be shut on
 * every backend.
 */
const DOCKER_DIFFERS: Record<string, string> = {
  'call io_uring_setup': 'the default profile of engines before 25 allows it; the calls it carries are still checked',
  'socket 40 1 0': 'the default profile of engines before 23 allows vsock, which the network "none" does not cover',
  'call-32 359 40 1 0': 'the same by its other number',
  'type-into-terminal': 'into its own terminal, which nobody outside types in',
  'bomb watches': 'a container’s root is the host’s root to the kernel, and shares its number of watchers',
};

/** Whether this attempt may succeed in this world, because the table says so. */
export function differs(world: World, words: string[]): boolean {
  return world.backend === 'docker' && words.join(' ') in DOCKER_DIFFERS;
}
