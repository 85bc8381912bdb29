/**
 * Which build of the addon this process can load: the system, the processor and, on Linux, the C library of the process.
 * That is not always the machine's own: a musl Node also runs on Debian, and a glibc Node on Alpine.
 */
import { readFileSync } from 'node:fs';

/** Every build, by the suffix of its package. */
export const PLATFORMS = [
  'linux-x64-gnu',
  'linux-arm64-gnu',
  'linux-x64-musl',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
  'win32-x64-msvc',
  'win32-arm64-msvc',
];

/** What a process knows of itself; tests replace it. */
export interface Machine {
  platform: string;
  arch: string;
  /** The text of a file, if it exists and is readable. */
  read(path: string): string | undefined;
  /** The glibc version in Node's process report; undefined in other runtimes, empty on musl. */
  reportedGlibc(): string | undefined;
}

export function platformName(machine: Machine = thisMachine): string {
  const { platform, arch } = machine;
  if (platform === 'linux') return `linux-${arch}-${libc(machine)}`;
  if (platform === 'win32') return `win32-${arch}-msvc`;
  return `${platform}-${arch}`;
}

function libc(machine: Machine): 'gnu' | 'musl' {
  // Shared objects of this process: the only answer that a container, a wrapper or a second libc cannot falsify.
  const mapped = machine.read('/proc/self/maps');
  if (mapped && /\/(ld-musl-|libc\.musl-)/.test(mapped)) return 'musl';
  if (mapped && /\/(ld-linux|ld-2\.|libc\.so\.6|libc-2\.)/.test(mapped)) return 'gnu';
  // No readable /proc, as in Deno without --allow-all.
  const reported = machine.reportedGlibc();
  if (reported !== undefined) return reported ? 'gnu' : 'musl';
  return machine.read('/usr/bin/ldd')?.includes('musl') ? 'musl' : 'gnu';
}

const thisMachine: Machine = {
  platform: process.platform,
  arch: process.arch,
  read(path) {
    try {
      return readFileSync(path, 'latin1');
    } catch {
      return undefined;
    }
  },
  reportedGlibc() {
    const { report } = process as { report?: NodeJS.ProcessReport & { excludeNetwork?: boolean } };
    if (!report) return undefined;
    // With network, a report resolves the name of every open connection.
    const { excludeNetwork } = report;
    report.excludeNetwork = true;
    try {
      const { header } = report.getReport() as { header?: { glibcVersionRuntime?: string } };
      return header ? (header.glibcVersionRuntime ?? '') : undefined;
    } catch {
      return undefined;
    } finally {
      report.excludeNetwork = excludeNetwork;
    }
  },
};
