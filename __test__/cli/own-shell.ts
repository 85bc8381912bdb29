/** `cofferdam shell` in a terminal, with a sandbox of its own. */
import { IMAGES, testManager, until } from '../support';
import { Pane } from './pane';

/** Looks at the same sandboxes, from outside. */
export const manager = testManager({ defaults: { image: IMAGES.alpine } });

/** Limits are what a sandbox that nobody else can find is known by. */
function mark(): { flags: string; find: () => Promise<string[]> } {
  const pids = 1000 + Math.floor(Math.random() * 4_000_000);
  return {
    flags: `--image ${IMAGES.alpine} --pids ${pids}`,
    find: async () => (await manager.list()).filter(({ limits }) => limits.pids === pids).map(({ id }) => id),
  };
}

/** A shell in a sandbox of its own, in a terminal. */
export async function shell(options: { words?: string; pane?: Parameters<typeof Pane.open>[0] } = {}) {
  const pane = await Pane.open(options.pane);
  const before = await pane.settings();
  const { flags, find } = mark();
  pane.enter(`clear; $NODE $COFFERDAM shell ${flags} ${options.words ?? ''}`);
  await pane.shows(/^\/workspace #$/m);
  return { pane, before, find, id: await until(async () => (await find())[0]) };
}

/** Waits until a program runs in the sandbox: what is typed ahead of it is not yet its own. */
export async function runs(id: string, name: string, count = 1): Promise<void> {
  const sandbox = await manager.get(id);
  const names = async () => (await sandbox.exec('cat /proc/[0-9]*/comm')).stdout.split('\n');
  await until(async () => (await names()).filter((each) => each === name).length === count);
}
