// A Docker daemon that we start ourselves and stop again. It needs neither systemd nor a working iptables,
// keeps the default data root so that images stay cached, and dies with us even when we are killed.

import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { exited, launch } from './child.mjs';
import { adminEnv } from './debian.mjs';
import { EngineApi } from './engine-api.mjs';
import { atEnd } from './lifetime.mjs';

export const DAEMON_HOST = 'unix:///var/run/docker.sock';
const PID_FILE = '/var/run/docker.pid';
const CONTAINERD_PID_FILE = '/var/run/docker/containerd/containerd.pid';
const LOG_FILE = fileURLToPath(new URL('../.cache/dockerd.log', import.meta.url));

const START_MS = 120_000;
const STOP_MS = 90_000;

/** Tried in turn while the daemon gives up on the network: all, no packet filter rules, not even a bridge. */
const NO_FILTER = ['--iptables=false', '--ip6tables=false'];
const NETWORKS = [[], NO_FILTER, [...NO_FILTER, '--bridge=none']];
const NETWORK_TROUBLE = /iptables|nftables|bridge|network controller/i;

/** Starts dockerd and resolves to `stop()` once it answers. */
export async function startDockerd() {
  for (const network of NETWORKS) {
    dropStalePidFile(CONTAINERD_PID_FILE, 'containerd');
    const daemon = spawnDaemon(network);
    if (await answers(daemon.exit)) return daemon.stop;
    await daemon.stop();
    if (!NETWORK_TROUBLE.test(logTail())) break;
  }
  throw new Error(`dockerd did not come up. The end of ${LOG_FILE}:\n${logTail()}`);
}

/** Whether a dockerd that somebody else started lives; a pid file without one is removed. */
export function anotherDockerd() {
  return !dropStalePidFile(PID_FILE, 'dockerd');
}

/** Resolves to whether the daemon answers before `gone` settles and before the time is up. */
export async function answers(gone = new Promise(() => {})) {
  const api = new EngineApi(DAEMON_HOST);
  const deadline = Date.now() + START_MS;
  while (Date.now() < deadline) {
    const up = api.ping(2000).then(
      () => true,
      () => false,
    );
    if (await up) return true;
    const end = await Promise.race([gone, sleep(100, 'waiting')]);
    if (end !== 'waiting') return false;
  }
  return false;
}

function spawnDaemon(args) {
  mkdirSync(path.dirname(LOG_FILE), { recursive: true });
  const log = openSync(LOG_FILE, 'w');
  // The parent-death signal is for the case that no handler can catch: a `kill -9` on us.
  const child = launch('setpriv', ['--pdeathsig', 'TERM', 'dockerd', '--host', DAEMON_HOST, ...args], {
    env: { ...process.env, ...adminEnv() },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const exit = exited(child);

  const stop = async () => {
    release();
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await exit;
    clearTimeout(timer);
  };
  const release = atEnd(stop);
  return { exit, stop };
}

/** Removes a pid file whose process is gone or is now another program; says whether the coast is clear. */
function dropStalePidFile(file, program) {
  if (!existsSync(file)) return true;
  const comm = `/proc/${readFileSync(file, 'utf8').trim()}/comm`;
  if (existsSync(comm) && readFileSync(comm, 'utf8').trim() === program) return false;
  rmSync(file, { force: true });
  return true;
}

function logTail() {
  return readFileSync(LOG_FILE, 'utf8').trimEnd().split('\n').slice(-15).join('\n');
}
