// Where the contestants meet: the same image, the same place in it, and labels by which everything of one run is found
// and removed again, also when the run is cut short.

import Docker from 'dockerode';

export const IMAGE = 'ubuntu:22.04';

/** Where files go in every container. */
export const PLACE = '/bench';

/** Keeps a container alive; not for ever, so that one that was forgotten by a `kill -9` goes by itself. */
export const IDLE_COMMAND = ['sleep', '3600'];

const RUN_LABEL = 'cofferdam.bench.run';

/** cofferdam keeps its callers' labels under this prefix. */
const PREFIXES = ['', 'cofferdam.label.'];

export function labelsOf(runId) {
  return { 'cofferdam.bench': '1', [RUN_LABEL]: runId };
}

/** Removes every container of a run. Looks again until nothing new turns up: a create may have been under way. */
export async function sweep(runId, label = RUN_LABEL) {
  const docker = new Docker();
  let quiet = 0;
  while (quiet < 2) {
    const left = await leftOver(runId, label);
    quiet = left.length === 0 ? quiet + 1 : 0;
    await Promise.all(left.map(({ Id }) => removeIfThere(docker.getContainer(Id))));
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

export async function leftOver(runId, label = RUN_LABEL) {
  const docker = new Docker();
  const lists = PREFIXES.map((prefix) =>
    docker.listContainers({ all: true, filters: { label: [`${prefix}${label}=${runId}`] } }),
  );
  return (await Promise.all(lists)).flat();
}

async function removeIfThere(container) {
  try {
    await container.remove({ force: true });
  } catch (error) {
    // 404: gone by itself; 409: another removal of it is under way.
    if (error.statusCode !== 404 && error.statusCode !== 409) throw error;
  }
}
