/** Files and folders copied between the host and a fake sandbox. Links are skipped, and reported as skipped. */
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { SandboxError } from '../errors';
import type { NativeProgress, NativeTransfer, NativeTransferReport } from '../internal/binding';
import { Disk } from './disk';
import { inScope } from './search';

type OnProgress = ((step: NativeProgress) => void) | undefined;

function missing(path: string): never {
  throw new SandboxError('FILE_NOT_FOUND', `cannot copy "${path}": no such file or directory`);
}

export function upload(disk: Disk, transfer: NativeTransfer, onProgress: OnProgress): NativeTransferReport {
  const stat =
    lstatSync(transfer.hostPath.replace(/(.)\/$/, '$1'), { throwIfNoEntry: false }) ?? missing(transfer.hostPath);
  const source = new Disk('/');
  const skipped: NativeTransferReport['skipped'] = [];
  if (stat.isDirectory()) readTree(source, transfer.hostPath, '/tree', skipped);
  else source.write({ path: '/tree', mode: stat.mode & 0o7777 }, readFileSync(transfer.hostPath));
  const target =
    !stat.isDirectory() && transfer.path.endsWith('/') ? transfer.path + basename(transfer.hostPath) : transfer.path;
  return copyTree(source, '/tree', transfer, skipped, onProgress, {
    mkdir: (path, mode) => disk.mkdir(posix.join(target, path), mode),
    has: (path, bytes) =>
      disk.stat(posix.join(target, path))?.fileType === 'file' &&
      disk.read(posix.join(target, path)).bytes.equals(bytes),
    write: (path, bytes, mode) => disk.write({ path: path === '' ? target : posix.join(target, path), mode }, bytes),
  });
}

function readTree(disk: Disk, host: string, path: string, skipped: NativeTransferReport['skipped']): void {
  disk.mkdir(path, lstatSync(host).mode & 0o7777);
  for (const entry of readdirSync(host, { withFileTypes: true })) {
    const [from, to] = [join(host, entry.name), posix.join(path, entry.name)];
    if (entry.isDirectory()) readTree(disk, from, to, skipped);
    else if (entry.isFile()) disk.write({ path: to, mode: lstatSync(from).mode & 0o7777 }, readFileSync(from));
    else skipped.push({ path: posix.relative('/tree', to), reason: 'the fake manager copies files and folders only' });
  }
}

export function download(disk: Disk, transfer: NativeTransfer, onProgress: OnProgress): NativeTransferReport {
  const { path, hostPath } = transfer;
  const entry = disk.stat(path) ?? missing(disk.resolve(path));
  const target =
    entry.fileType === 'file' && hostPath.endsWith('/') ? join(hostPath, posix.basename(entry.path)) : hostPath;
  return copyTree(disk, path, transfer, [], onProgress, {
    mkdir: (below) => mkdirSync(join(target, below), { recursive: true }),
    has: (below, bytes) => {
      const there = join(target, below);
      return lstatSync(there, { throwIfNoEntry: false })?.isFile() === true && readFileSync(there).equals(bytes);
    },
    write: (below, bytes, mode) => {
      const file = below === '' ? target : join(target, below);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, bytes);
      chmodSync(file, mode & 0o777);
    },
  });
}

interface Target {
  mkdir(path: string, mode: number): void;
  has(path: string, bytes: Buffer): boolean;
  write(path: string, bytes: Buffer, mode: number): void;
}

function copyTree(
  source: Disk,
  root: string,
  { exclude, gitignore, sync }: NativeTransfer,
  skipped: NativeTransferReport['skipped'],
  onProgress: OnProgress,
  target: Target,
): NativeTransferReport {
  const began = performance.now();
  const report: NativeTransferReport = { files: 0, dirs: 0, links: 0, bytes: 0, skipped, durationMs: 0 };
  const whole = source.stat(root) ?? missing(root);
  const isFile = whole.fileType === 'file';
  if (!isFile) target.mkdir('', whole.mode);
  const entries = isFile ? [['', whole] as const] : inScope(source, { path: root, exclude, gitignore, hidden: true });
  for (const [path, { path: absolute, fileType, mode }] of entries) {
    if (fileType === 'dir') {
      target.mkdir(path, mode);
      report.dirs += 1;
      continue;
    }
    const { bytes } = source.read(absolute);
    if (sync && target.has(path, bytes)) continue;
    target.write(path, bytes, mode);
    report.files += 1;
    report.bytes += bytes.length;
    onProgress?.({ files: report.files, bytes: report.bytes, path });
  }
  report.durationMs = performance.now() - began;
  return report;
}
