/** Versions of this package, its addon, Node and the system. */
import { arch, release, version as systemVersion } from 'node:os';
import path from 'node:path';
import { addon } from '../../internal/native';
import { version } from '../../version';
import { type Finding, faulty, ok } from './finding';
import { textOf } from './machine';

const OLDEST_NODE = 20;

export function versions(): Finding[] {
  return [ours(), nativeAddon(), node(), system()];
}

function ours(): Finding {
  return ok('Versions', 'version', `cofferdam ${version}`, { version });
}

function nativeAddon(): Finding {
  try {
    addon();
  } catch (error) {
    const [reason = '', ...tried] = String((error as Error).message).split('\n');
    const said = [reason, ...tried].join(' ');
    return faulty('problem', 'Versions', 'addon', `the native addon cannot be loaded: ${said}`, cureOf(said), {
      platform: `${process.platform}-${process.arch}`,
      tried: tried.map((line) => line.trim()).filter(Boolean),
    });
  }
  // Only one module has such a name.
  const file = Object.keys(require.cache).find((name) => /cofferdam[^/\\]*\.node$/.test(name));
  const manifest = file === undefined ? undefined : textOf(path.join(path.dirname(file), 'package.json'));
  const { name, version: its } = (manifest ? JSON.parse(manifest) : {}) as { name?: string; version?: string };
  const facts = { file: file ?? null, package: name ?? null, version: its ?? null };
  if (its !== undefined && its !== version) {
    const text = `the native addon has version ${its} (${name}), but this package has ${version}`;
    return faulty('warning', 'Versions', 'addon', text, `npm install cofferdam@${version}`, facts);
  }
  const from = name === undefined || name === 'cofferdam' ? 'built in this checkout' : `${name} ${its}`;
  return ok('Versions', 'addon', `native addon: ${from}`, facts);
}

/** The loader's advice, if it is a command. An old C library cannot be fixed by installing our packages. */
function cureOf(said: string): string {
  if (/GLIBC|GLIBCXX/.test(said)) return 'docker run -it --rm -v "$PWD:/app" -w /app node:22 npx cofferdam doctor';
  const [, advised] = /"(npm install [^"]+)"/.exec(said) ?? [];
  return advised ?? 'npm install --include=optional cofferdam';
}

function node(): Finding {
  const found = process.versions.node;
  const facts = { version: found, executable: process.execPath };
  if (Number(found.split('.')[0]) >= OLDEST_NODE) return ok('Versions', 'node', `Node ${found}`, facts);
  const text = `Node ${found} is older than ${OLDEST_NODE}, which this package needs`;
  return faulty(
    'problem',
    'Versions',
    'node',
    text,
    'npx --package=node@22 --package=cofferdam cofferdam doctor',
    facts,
  );
}

function system(): Finding {
  const facts = { platform: process.platform, arch: arch(), kernel: release(), libc: libc(), name: systemName() };
  const text = [facts.name, `${facts.platform} ${facts.arch}`, `kernel ${facts.kernel}`, facts.libc];
  return ok('Versions', 'system', text.filter(Boolean).join(', '), facts);
}

function systemName(): string {
  const [, name] = /^PRETTY_NAME="?(.*?)"?$/m.exec(textOf('/etc/os-release') ?? '') ?? [];
  return name ?? systemVersion();
}

function libc(): string | null {
  if (process.platform !== 'linux') return null;
  const { header } = (process.report?.getReport() ?? {}) as { header?: { glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime ? `glibc ${header.glibcVersionRuntime}` : 'musl';
}
