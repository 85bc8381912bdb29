// The Debian (or Ubuntu) machine we run on: which release it is, what its apt is configured with, and
// packages from it. No mirror is named here: whatever the machine uses, we use.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { run } from './child.mjs';
import { atEnd } from './lifetime.mjs';

const POLICY_FILE = '/usr/sbin/policy-rc.d';
const POLICY = '#!/bin/sh\n# cofferdam: packages installed by its scripts start no services.\nexit 101\n';

/** Non-login shells of root often lack these; dpkg, debootstrap and dockerd need them. */
const adminPath = () => [process.env.PATH, '/usr/local/sbin', '/usr/sbin', '/sbin'].join(':');

export function adminEnv() {
  return { PATH: adminPath(), DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_SUSPEND: '1', ...aptProxy() };
}

/** Why packages cannot be installed here, as a sentence; nothing when they can. */
export function whyNoPackages() {
  const { ID = 'unknown', ID_LIKE = '' } = osRelease();
  if (![ID, ...ID_LIKE.split(' ')].some((id) => id === 'debian' || id === 'ubuntu')) {
    return `That takes packages of Debian or Ubuntu, and this system is ${ID} (${process.platform}).`;
  }
  if (process.getuid() !== 0) return 'That takes packages, and installing them takes root.';
  return undefined;
}

export function isInstalled(program) {
  return adminPath()
    .split(':')
    .some((folder) => folder && existsSync(path.join(folder, program)));
}

let updated;
let installing = Promise.resolve();

/** Installs packages without what they only recommend, and without letting them start a service; one call after the other. */
export function install(packages) {
  const done = installing.then(() => installNow(packages));
  installing = done.catch(() => {});
  return done;
}

async function installNow(packages) {
  await update();
  const allowServices = forbidServices();
  try {
    await apt(['install', '--yes', '--no-install-recommends', ...packages], 'finish');
  } finally {
    allowServices();
  }
}

/** Unpacks a package's files into `folder` and leaves the machine itself as it is. */
export async function unpack(name, folder) {
  await update();
  const script = 'cd "$1" && apt-get download -q "$2" && dpkg-deb --extract "$2"_*.deb . && rm "$2"_*.deb';
  await run('sh', ['-euc', script, 'unpack', folder, name], { env: adminEnv(), output: 'keep' });
}

/** Once for us and all that we start: two at a time would be in each other's way. */
function update() {
  if (process.env.COFFERDAM_APT_UPDATED) return;
  updated ??= apt(['update'], 'finish').then(() => {
    process.env.COFFERDAM_APT_UPDATED = '1';
  });
  return updated;
}

function apt(args, interrupt) {
  const options = ['-q', '-o', 'DPkg::Lock::Timeout=300'];
  return run('apt-get', [...options, ...args], { env: adminEnv(), output: 'keep', interrupt });
}

/** A machine's own policy is left alone; ours, left behind by a killed run, is taken over. */
function forbidServices() {
  if (existsSync(POLICY_FILE) && readFileSync(POLICY_FILE, 'utf8') !== POLICY) return () => {};
  writeFileSync(POLICY_FILE, POLICY, { mode: 0o755 });
  const remove = () => rmSync(POLICY_FILE, { force: true });
  const release = atEnd(remove);
  return () => {
    release();
    remove();
  };
}

/** `{ mirror, suite }` to build a root file system from: Debian 12 on Debian, its own release on Ubuntu. */
export function archive() {
  const { ID, VERSION_CODENAME } = osRelease();
  const usable = aptSources().find(({ uri, suites }) => /^https?:/.test(uri) && suites.includes(VERSION_CODENAME));
  if (!usable) {
    throw new Error(
      `apt has no http source for "${VERSION_CODENAME}" in /etc/apt: no mirror to build images from. ` +
        'Add one to /etc/apt/sources.list.d, or give the engine a container registry it can reach.',
    );
  }
  return { mirror: usable.uri, suite: ID === 'debian' ? 'bookworm' : VERSION_CODENAME };
}

/** @returns {{ uri: string, suites: string[] }[]} binary sources, in apt's order */
export function aptSources(folder = '/etc/apt') {
  const parts = path.join(folder, 'sources.list.d');
  const names = existsSync(parts) ? readdirSync(parts).sort() : [];
  const files = [path.join(folder, 'sources.list'), ...names.map((name) => path.join(parts, name))];
  return files.filter(existsSync).flatMap((file) => {
    const text = readFileSync(file, 'utf8').replace(/^\s*#.*\n?/gm, '');
    if (file.endsWith('.list')) return oneLineSources(text);
    if (file.endsWith('.sources')) return stanzaSources(text);
    return [];
  });
}

function oneLineSources(text) {
  return [...text.matchAll(/^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)/gm)].map(([, uri, suite]) => ({
    uri,
    suites: [suite],
  }));
}

function stanzaSources(text) {
  return text.split(/\n\s*\n/).flatMap((stanza) => {
    const field = (name) => stanza.match(new RegExp(`^${name}:(.*(?:\\n[ \\t].*)*)`, 'im'))?.[1].trim();
    if (/^(no|false|off|0)$/i.test(field('Enabled') ?? '')) return [];
    if (!field('Types')?.split(/\s+/).includes('deb')) return [];
    const suites = field('Suites')?.split(/\s+/) ?? [];
    return (field('URIs')?.split(/\s+/) ?? []).map((uri) => ({ uri, suites }));
  });
}

/** apt's proxy for the programs beside apt that fetch packages (debootstrap uses wget). */
function aptProxy() {
  if (process.env.http_proxy || !existsSync('/usr/bin/apt-config')) return {};
  const line = execFileSync('apt-config', ['shell', 'PROXY', 'Acquire::http::Proxy'], { encoding: 'utf8' });
  const proxy = line.match(/^PROXY='(http[^']*)'/)?.[1];
  return proxy ? { http_proxy: proxy } : {};
}

function osRelease() {
  if (!existsSync('/etc/os-release')) return {};
  const lines = readFileSync('/etc/os-release', 'utf8').matchAll(/^(\w+)="?([^"\n]*)"?$/gm);
  return Object.fromEntries([...lines].map(([, key, value]) => [key, value]));
}
