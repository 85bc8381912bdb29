/**
 * Which build of the addon this process can load: the system, the processor and, on Linux, the C library that the process
 * itself runs on. That is not always the machine's: a Node of musl runs on Debian too, and one of glibc on Alpine.
 */
import { readFileSync } from 'node:fs';

/** Every build there is, by the name that its package ends in. */
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

/** What a process can say of itself; a test says it for another one. */
export interface Machine {
  platform: string;
  arch: string;
  /** The text of a file, if there is one and it may be read. */
  read(path: string): string | undefined;
  /** The version of glibc in Node's report on the process; not there in other runtimes, empty on musl. */
  reportedGlibc(): string | undefined;
}

export function platformName(machine: Machine = thisMachine): string {
  const { platform, arch } = machine;
  if (platform === 'linux') return `linux-${arch}-${libc(machine)}`;
  if (platform === 'win32') return `win32-${arch}-msvc`;
  return `${platform}-${arch}`;
}

function libc(machine: Machine): 'gnu' | 'musl' {
  // Shared objects of this very process: the one answer that a container, a wrapper or a second libc cannot make wrong.
  const mapped = machine.read('/proc/self/maps');
  if (mapped && /\/(ld-musl-|libc\.musl-)/.test(mapped)) return 'musl';
  if (mapped && /\/(ld-linux|ld-2\.|libc\.so\.6|libc-2\.)/.test(mapped)) return 'gnu';
  // No /proc, or none that may be read, as in Deno without --allow-all.
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
    // With the network in it, a report asks the DNS for the name of every open connection.
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
