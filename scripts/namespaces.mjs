// The tests on sandboxes without an engine: as whoever runs this, and, where that is root, as an ordinary user made for it.

import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { adminEnv, install, isInstalled, whyNoPackages } from './debian.mjs';
import { atEnd } from './lifetime.mjs';
import { ensureRoots } from './roots.mjs';
import { Unavailable } from './unavailable.mjs';

/** All that says nothing of Docker; what does and is in these says so by its name. */
const SUITES = [
  '__test__/(contract|exactness|faults)/',
  '__test__/cli/(cp|exec|run|sessions|shell|watching)',
  '__test__/integration/(host-exit|in-container|killed-hosts|lost|many-opens|namespaces(-images)?|orphan|setup|threaded-host)',
];

/** What a person can do where there are none. */
const NEXT =
  'Allow user namespaces to ordinary users (sysctl user.max_user_namespaces, AppArmor), or run this as root.';

/** Asks the built package, which tries one; rejects with {@link Unavailable} where this machine has none for us. */
export async function ensureNamespaces() {
  const { SandboxManager } = await import('../index.mjs');
  const manager = new SandboxManager({ backend: 'namespaces' });
  try {
    await manager.info();
  } catch (error) {
    throw new Unavailable(`Sandboxes of namespaces cannot be made here: ${error.message}`, NEXT);
  } finally {
    await manager.close();
  }
}

/** Where unpacked images stay for the next time. */
const ROOTS = '/var/tmp/cofferdam-roots';

/**
 * As whoever runs this.
 *
 * @param {string} host the engine that has the images, as in DOCKER_HOST
 */
export async function testNamespaces(steps, host, env) {
  await steps.time('images as folders', () => ensureRoots(host, ROOTS));
  const own = { ...env, COFFERDAM_BACKEND: 'namespaces', COFFERDAM_TEST_ROOTS: ROOTS };
  await steps.run('jest, on namespaces', 'npx', ['jest', ...SUITES], { env: own });
}

/** As an ordinary user, where root runs this. */
export async function testAsOrdinaryUser(steps, host, env) {
  const user = await ordinaryUser();
  const roots = path.join(user.home, 'roots');
  await steps.time('images as folders of an ordinary user', () => ensureRoots(host, roots, user));
  const variables = { HOME: user.home, COFFERDAM_BACKEND: 'namespaces', COFFERDAM_TEST_ROOTS: roots };
  const words = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const become = ['--reuid', user.name, '--regid', user.name, '--init-groups', 'env', '-u', 'DOCKER_HOST', ...words];
  const jest = ['npx', 'jest', '--cacheDirectory', path.join(user.home, 'jest'), '__test__/contract/'];
  await steps.beside('jest, on namespaces as an ordinary user', 'setpriv', [...become, ...jest], { env });
}

/** One with users of its own to give, who is gone with the command. */
async function ordinaryUser() {
  if (!isInstalled('newuidmap') && !whyNoPackages()) await install(['uidmap']);
  const name = `cofferdam-${process.pid}`;
  const home = path.join('/var/tmp', name);
  const admin = (program, ...args) => execFileSync(program, args, { env: { ...process.env, ...adminEnv() } });
  admin('useradd', '--create-home', '--home-dir', home, name);
  atEnd(() => admin('userdel', '--remove', name));
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(String(execFileSync('id', [flag, name]))));
  try {
    execFileSync('setpriv', [
      '--reuid',
      name,
      '--regid',
      name,
      '--clear-groups',
      'test',
      '-r',
      path.resolve('dist/index.js'),
    ]);
  } catch {
    throw new Error(`an ordinary user cannot read ${process.cwd()}: move the clone to a folder that all may enter`);
  }
  return { name, home, uid, gid };
}
