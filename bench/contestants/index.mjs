// Who takes part. The first is ours.

import { Cofferdam, Namespaces } from './cofferdam.mjs';
import { DockerCli } from './docker-cli.mjs';
import { Dockerode } from './dockerode.mjs';
import { Host } from './host.mjs';

export const LABELS = {
  cofferdam: 'cofferdam',
  namespaces: 'namespaces',
  dockerode: 'dockerode',
  'docker-cli': 'docker CLI',
  host: 'host, no sandbox',
};

const KINDS = {
  cofferdam: Cofferdam,
  namespaces: Namespaces,
  dockerode: Dockerode,
  'docker-cli': DockerCli,
  host: Host,
};

export function contestant(id, runId) {
  return new KINDS[id](runId);
}

/** Those that this machine has. */
export async function contestants(runId) {
  const has = { namespaces: await Namespaces.isThere(), 'docker-cli': await DockerCli.isThere() };
  return Object.keys(KINDS)
    .filter((id) => has[id] ?? true)
    .map((id) => contestant(id, runId));
}
