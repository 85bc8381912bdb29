// Stand-ins for the fixture images, built from Debian packages where no registry answers. Runs only as a
// child of fixtures.mjs, as root in a mount namespace of its own: everything is built in a tmpfs there (dpkg
// syncs a lot: three times faster than on a disk), and nothing is left behind. An image gets its name when it
// is complete, not before.
//
//   unshare --mount node scripts/stand-ins.mjs <engine> <empty folder> <image…>

import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { exited, run } from './child.mjs';
import { adminEnv, archive, unpack } from './debian.mjs';
import { EngineApi } from './engine-api.mjs';
import { STAND_IN_LABEL } from './fixtures.mjs';
import { command } from './lifetime.mjs';
import { seconds } from './steps.mjs';

const SYSTEM_PATH = 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** What a build leaves in a tree and an image has no use for. */
const NOT_PACKED = [
  './dev/*',
  './etc/hostname',
  './etc/resolv.conf',
  './var/cache/apt/*.bin',
  './var/cache/apt/archives/*.deb',
  './var/lib/apt/lists/*_*',
  './var/log/*.log',
];

/** In this order: Python is installed into the base itself and therefore comes last. */
const ON_DEBIAN = {
  'ubuntu:22.04': importUbuntu,
  'node:20-slim': importNode,
  'python:3.11-slim': importPython,
};

const [host, work, ...images] = process.argv.slice(2);

await command(async () => {
  process.umask(0o022);
  await run('mount', ['-t', 'tmpfs', '-o', 'size=2g,mode=755', 'cofferdam', work], { output: 'keep' });
  if (images.includes('alpine:3.19')) await timed('alpine:3.19', importAlpine);
  const onDebian = Object.entries(ON_DEBIAN).filter(([name]) => images.includes(name));
  if (onDebian.length === 0) return;
  const base = path.join(work, 'debian');
  await timed('Debian base', () => bootstrap(base));
  for (const [name, importFrom] of onDebian) await timed(name, () => importFrom(base));
});

async function bootstrap(base) {
  const { mirror, suite } = archive();
  const packages = mirror.startsWith('https:') ? 'procps,ca-certificates' : 'procps';
  const args = ['--variant=minbase', `--include=${packages}`, suite, base, mirror];
  await run('debootstrap', args, { env: adminEnv(), output: 'keep' });
}

function importUbuntu(base) {
  return importTree('ubuntu:22.04', base, ['CMD ["/bin/bash"]']);
}

/** The base with the Node that runs this script, the libraries of it that the base lacks, and its npm. */
async function importNode(base) {
  const tree = path.join(work, 'node');
  await run('cp', ['--archive', '--link', base, tree]);
  cpSync(realpathSync(process.execPath), path.join(tree, 'usr/local/bin/node'));
  for (const library of librariesOf(process.execPath)) {
    if (existsSync(path.join(tree, library))) continue;
    // Not /usr/local/lib: the loader looks here also without a new ld.so.cache.
    cpSync(realpathSync(library), path.join(tree, 'usr/lib', path.basename(library)));
  }
  const npm = npmFolder();
  if (npm) {
    cpSync(npm, path.join(tree, 'usr/local/lib/node_modules/npm'), { recursive: true });
    for (const name of ['npm', 'npx']) {
      symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, path.join(tree, 'usr/local/bin', name));
    }
  }
  await importTree('node:20-slim', tree, ['CMD ["node"]']);
}

async function importPython(base) {
  const inBase = (...args) => run('chroot', [base, ...args], { env: adminEnv(), output: 'keep' });
  await inBase('apt-get', 'update', '-q');
  const packages = ['python3', 'python3-pip', 'ca-certificates'];
  await inBase('apt-get', 'install', '-q', '--yes', '--no-install-recommends', ...packages);
  for (const name of ['python', 'python3']) symlinkSync('/usr/bin/python3', `${base}/usr/local/bin/${name}`);
  await importTree('python:3.11-slim', base, ['CMD ["python3"]', 'ENV LANG=C.UTF-8']);
}

/** One static busybox under all its names. */
async function importAlpine() {
  const unpacked = path.join(work, 'busybox');
  mkdirSync(unpacked);
  await unpack('busybox-static', unpacked);

  const tree = path.join(work, 'alpine');
  for (const folder of 'bin etc home lib proc root run sbin sys tmp usr/bin var/tmp'.split(' ')) {
    mkdirSync(path.join(tree, folder), { recursive: true });
  }
  for (const folder of ['tmp', 'var/tmp']) chmodSync(path.join(tree, folder), 0o1777);
  const busybox = path.join(tree, 'bin/busybox');
  const packaged = ['bin/busybox', 'usr/bin/busybox'].map((file) => path.join(unpacked, file));
  cpSync(packaged.find(existsSync), busybox);
  const applets = execFileSync(busybox, ['--list'], { encoding: 'utf8' }).split('\n');
  for (const applet of applets.filter((name) => name && name !== 'busybox')) {
    symlinkSync('/bin/busybox', path.join(tree, 'bin', applet));
  }
  // `#!/usr/bin/env` is where scripts expect it.
  symlinkSync('/bin/busybox', path.join(tree, 'usr/bin/env'));
  const passwd = ['root:x:0:0:root:/root:/bin/sh', 'nobody:x:65534:65534:nobody:/:/sbin/nologin'];
  writeFileSync(path.join(tree, 'etc/passwd'), `${passwd.join('\n')}\n`);
  writeFileSync(path.join(tree, 'etc/group'), 'root:x:0:root\nnobody:x:65534:\n');
  await importTree('alpine:3.19', tree, ['CMD ["/bin/sh"]']);
}

function importTree(name, tree, changes) {
  return new EngineApi(host).importImage(name, tar(tree), [STAND_IN_LABEL, SYSTEM_PATH, ...changes]);
}

/** A tree as an archive; a failure of tar breaks the stream instead of ending it. */
async function* tar(tree) {
  const excludes = NOT_PACKED.map((pattern) => `--exclude=${pattern}`);
  const args = ['--create', '--directory', tree, '--numeric-owner', '--anchored', ...excludes, '.'];
  const child = spawn('tar', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = exited(child);
  yield* child.stdout;
  const { code } = await exit;
  if (code !== 0) throw new Error(`tar ended with ${code}`);
}

function librariesOf(program) {
  const lines = execFileSync('ldd', [program], { encoding: 'utf8' });
  return [...lines.matchAll(/(\/\S+) \(0x/g)].map(([, library]) => library);
}

/** npm's own folder, or nothing where this Node came without it. */
function npmFolder() {
  const beside = path.join(path.dirname(process.execPath), 'npm');
  return existsSync(beside) ? path.dirname(path.dirname(realpathSync(beside))) : undefined;
}

async function timed(title, work) {
  const began = Date.now();
  await work();
  console.log(`${title} built in ${seconds(Date.now() - began)}`);
}
