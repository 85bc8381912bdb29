/** The command that fixes an engine that cannot be used. */
import { readFileSync, statSync } from 'node:fs';
import type { EngineAttempt } from '../../options';
import { userName } from '../user-name';
import { asRoot, has, installing, isRoot, service, unsetting } from './machine';

/** If no engine was found at all. */
export function cureOfNoEngine(): string {
  if (has('dockerd')) return service('start', 'docker');
  if (has('podman')) return service('start', 'podman.socket');
  if (process.platform === 'darwin' && has('docker')) return service('start', 'docker');
  return installing('docker');
}

export function cureOf(attempt: EngineAttempt): string {
  const { host, reason } = attempt;
  switch (reason) {
    case 'denied':
      return cureOfDenied(host);
    case 'old-api':
      return installing('docker');
    case 'missing':
    case 'refused':
    case 'silent':
    case 'other':
      return isUsual(host) ? service(reason === 'silent' ? 'restart' : 'start', daemonOf(host)) : elsewhere(attempt);
    default:
      return elsewhere(attempt);
  }
}

/** Removes the setting that names a wrong engine. */
function elsewhere({ source }: EngineAttempt): string {
  if (source === 'DOCKER_HOST') return unsetting('DOCKER_HOST');
  if (source.startsWith('context ')) {
    return process.env.DOCKER_CONTEXT ? unsetting('DOCKER_CONTEXT') : 'docker context use default';
  }
  return source === 'option' ? 'npx cofferdam doctor' : cureOfNoEngine();
}

/** A socket of the machine's own service. */
function isUsual(host: string): boolean {
  return /^unix:\/\/(\/var)?\/run\/(docker|podman\/podman|user\/\d+\/docker|user\/\d+\/podman\/podman)\.sock$/.test(
    host,
  );
}

function daemonOf(host: string): 'docker' | 'podman.socket' {
  return host.includes('podman') ? 'podman.socket' : 'docker';
}

function cureOfDenied(host: string): string {
  if (host.includes('podman') && !isRoot) return service('start', 'podman.socket');
  const group = groupOf(host.replace(/^unix:\/\//, ''));
  if (group === undefined) return asRoot('npx cofferdam doctor');
  // A new group member gets the group only at the next login.
  if (group.members.includes(userName())) return `newgrp ${group.name}`;
  return `${asRoot(`usermod -aG ${group.name} $USER`)} && newgrp ${group.name}`;
}

/** The group that may open a socket, unless it is root's. */
function groupOf(socket: string): { name: string; members: string[] } | undefined {
  try {
    const { gid, mode } = statSync(socket);
    if (gid === 0 || (mode & 0o020) === 0) return undefined;
    const lines = readFileSync('/etc/group', 'utf8').split('\n');
    const [name, , , members = ''] = lines.map((line) => line.split(':')).find(([, , id]) => id === String(gid)) ?? [];
    return name === undefined ? undefined : { name, members: members.split(',') };
  } catch {
    return undefined;
  }
}
