// Who takes part. The first is ours.

import { Cofferdam } from './cofferdam.mjs';
import { DockerCli } from './docker-cli.mjs';
import { Dockerode } from './dockerode.mjs';
import { Host } from './host.mjs';

export const LABELS = {
  cofferdam: 'cofferdam',
  dockerode: 'dockerode',
  'docker-cli': 'docker CLI',
  host: 'host, no sandbox',
};

const KINDS = { cofferdam: Cofferdam, dockerode: Dockerode, 'docker-cli': DockerCli, host: Host };

export function contestant(id, runId) {
  return new KINDS[id](runId);
}

/** Those that this machine has. */
export async function contestants(runId) {
  const ids = Object.keys(KINDS).filter((id) => id !== 'docker-cli');
  if (await DockerCli.isThere()) ids.splice(2, 0, 'docker-cli');
  return ids.map((id) => contestant(id, runId));
}
