// A Docker engine to work against: the one that is there, or one that we install and start where that is
// possible.

import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { install, isInstalled, whyNoPackages } from './debian.mjs';
import { anotherDockerd, answers, DAEMON_HOST, startDockerd } from './dockerd.mjs';
import { EngineApi } from './engine-api.mjs';
import { seconds } from './steps.mjs';
import { Unavailable } from './unavailable.mjs';

const PING_MS = 3000;

/**
 * Asks the usual places in turn. A set DOCKER_HOST is the only place asked, as with the docker CLI.
 *
 * @returns {Promise<{ host?: string, tried: { host: string, problem: string }[] }>}
 */
export async function findEngine() {
  const tried = [];
  for (const host of candidates()) {
    try {
      await new EngineApi(host).ping(PING_MS);
      return { host, tried };
    } catch (error) {
      tried.push({ host, problem: problemWith(error) });
    }
  }
  return { tried };
}

/**
 * @typedef {{ host: string, started: boolean, stop: () => Promise<void> }} Engine `stop()` ends only what was
 *   started here, and also runs when the command ends without it
 */

/**
 * @param {{ log?: (line: string) => void }} [options]
 * @returns {Promise<Engine>}
 * @throws {Unavailable} when there is no engine and none can be installed
 */
export async function ensureEngine({ log = console.log } = {}) {
  const { host, tried } = await findEngine();
  if (host) {
    log(`using the engine at ${host}`);
    return { host, started: false, stop: async () => {} };
  }
  requireRoomForAnEngine(tried);

  if (!isInstalled('dockerd')) {
    const began = Date.now();
    log('no engine here: installing docker.io');
    await install(['docker.io']);
    log(`docker.io installed in ${seconds(Date.now() - began)}`);
  }
  if (anotherDockerd()) {
    log('another dockerd is starting: waiting for it');
    if (await answers()) return { host: DAEMON_HOST, started: false, stop: async () => {} };
    throw new Error(`a dockerd is running but does not answer at ${DAEMON_HOST}: look at it, or stop it`);
  }
  const began = Date.now();
  const stop = await startDockerd();
  log(`dockerd started in ${seconds(Date.now() - began)}`);
  return { host: DAEMON_HOST, started: true, stop };
}

function candidates() {
  if (process.env.DOCKER_HOST) return [process.env.DOCKER_HOST];
  const home = os.homedir();
  const runtime = process.env.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.()}`;
  const sockets = [
    '/var/run/docker.sock',
    path.join(runtime, 'docker.sock'),
    path.join(home, '.docker/run/docker.sock'),
    path.join(home, '.docker/desktop/docker.sock'),
    path.join(home, '.colima/default/docker.sock'),
    path.join(home, '.orbstack/run/docker.sock'),
    path.join(home, '.rd/docker.sock'),
    '/run/podman/podman.sock',
    path.join(runtime, 'podman/podman.sock'),
  ];
  return sockets.filter((socket) => existsSync(socket)).map((socket) => `unix://${socket}`);
}

function problemWith(error) {
  if (error.code === 'ENOENT') return 'not there';
  if (error.code === 'ECONNREFUSED') return 'nobody listens there';
  if (error.code === 'EACCES') return 'this user may not open it (on Linux: join the group "docker", or use sudo)';
  return error.message;
}

function requireRoomForAnEngine(tried) {
  if (process.env.DOCKER_HOST) {
    const [{ host, problem }] = tried;
    throw new Unavailable(
      `DOCKER_HOST is ${host}, and no engine answers there: ${problem}.`,
      'Correct DOCKER_HOST, or unset it to let the usual places be searched.',
    );
  }
  const obstacle = whyNoPackages();
  if (!obstacle) return;
  throw new Unavailable(
    [
      'No Docker engine answers in the usual places, and one cannot be installed.',
      ...tried.map(({ host, problem }) => `${host}: ${problem}.`),
      obstacle,
    ].join('\n'),
    'Start Docker, Colima or Podman, or point DOCKER_HOST at an engine, and run this again.',
  );
}
