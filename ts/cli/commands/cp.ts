/**
 * `cofferdam cp`: files and folders between the host and a sandbox.
 *
 * A target that is a folder gets the source by its name; `source/.` stands for what is in a folder: as `docker cp` has it.
 */
import { stat } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import type { Sandbox } from '../../sandbox';
import type { TransferOptions, TransferReport } from '../../transfer';
import { command, EXIT, type Flags, type Given, say, UsageError } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { findSandbox } from '../find';
import { carry } from '../output';
import { type Place, placeOf } from '../place';
import { bytes, JSON_FLAG, printJson } from '../print';
import { ProgressLine } from '../progress-line';
import { stopSignal, unlessStopped } from '../stop';

const FLAGS = {
  gitignore: { type: 'boolean', about: 'Leave out what the .gitignore files in a folder say' },
  exclude: {
    type: 'string',
    short: 'x',
    multiple: true,
    value: 'pattern',
    about: 'Leave this out, as a .gitignore would',
  },
  sync: { type: 'boolean', about: 'Copy only what is not there already; nothing is removed' },
  quiet: { type: 'boolean', short: 'q', about: 'Show no progress' },
  ...JSON_FLAG,
  ...ENGINE,
} as const satisfies Flags;

export const cp = command({
  name: 'cp',
  summary: 'Copy files and folders into a sandbox or out of it',
  about: `Copies files and folders between the host and a sandbox, whose paths are written as <sandbox>:<path>, absolute or below
its workdir. Into a folder that is there, each source comes by its name; source/. stands for what is in a folder. A
source of - is our standard input, a target of - our standard output, for one file.`,
  operands: [
    { name: 'source', about: 'Paths of the host, or paths in one sandbox', many: true, complete: 'place' },
    { name: 'target', about: 'A path on the other side', complete: 'place' },
  ],
  flags: FLAGS,
  examples: [
    { line: 'cofferdam cp --gitignore . default:project', about: 'A checkout into the sandbox' },
    { line: 'cofferdam cp a.csv b.csv default:data/', about: 'Several files into a folder' },
    { line: 'cofferdam cp default:out/report.pdf .', about: 'A file out of it' },
    { line: 'cofferdam cp default:/etc/os-release -', about: 'A file to standard output' },
  ],
  async run({ flags, operands }) {
    const places = operands.map(placeOf);
    const target = places.at(-1) as Place;
    const sources = places.slice(0, -1);
    const name = theSandbox(sources, target);
    if (flags.json && places.some(({ kind }) => kind === 'standard')) {
      throw new UsageError('--json is for files and folders: with -, standard streams carry the file itself');
    }
    const signal = stopSignal();
    const sandbox = await unlessStopped(findSandbox(managerFrom(flags), name), signal);
    const line = new ProgressLine(process.stderr);
    const options: TransferOptions = {
      gitignore: flags.gitignore,
      exclude: flags.exclude,
      sync: flags.sync,
      signal,
      onProgress: flags.quiet ? undefined : (progress) => line.show(far(progress)),
    };
    const reports: TransferReport[] = [];
    try {
      for (const source of sources) {
        const report = await carryOne(sandbox, source, target, sources.length > 1, options);
        if (report) reports.push(report);
      }
    } finally {
      line.finish();
    }
    tell(reports, flags);
    return EXIT.ok;
  },
});

/** The one sandbox of all places, which is on one side alone. */
function theSandbox(sources: readonly Place[], target: Place): string {
  const ins = [...sources, target].filter((place) => place.kind === 'sandbox');
  const names = new Set(ins.map(({ sandbox }) => sandbox));
  const [name] = names;
  if (name === undefined) throw new UsageError('one side must be in a sandbox, as in default:path');
  const isOut = sources.every(({ kind }) => kind === 'sandbox');
  if (names.size > 1 || (target.kind === 'sandbox') === isOut || (target.kind !== 'sandbox' && !isOut)) {
    throw new UsageError('one side must be in a sandbox, and the other one here');
  }
  if (sources.length > 1 && [...sources, target].some(({ kind }) => kind === 'standard')) {
    throw new UsageError('- stands for one file, and there are several');
  }
  return name;
}

async function carryOne(
  sandbox: Sandbox,
  source: Place,
  target: Place,
  isOneOfMany: boolean,
  options: TransferOptions,
): Promise<TransferReport | undefined> {
  if (target.kind === 'sandbox') {
    if (source.kind === 'standard') {
      await sandbox.files.write(target.path, process.stdin, { signal: options.signal });
      return undefined;
    }
    const { path } = source as { path: string };
    // Here and not in the sandbox, where it would be a path of ours that nobody there knows.
    await stat(path);
    const isFolder = isOneOfMany || target.path.endsWith('/') || (await isSandboxFolder(sandbox, target.path));
    return sandbox.files.upload(path, isFolder ? within(posix.join, target.path, path) : target.path, options);
  }
  const { path } = source as { path: string };
  if (target.kind === 'standard') {
    await unlessStopped(print(sandbox, path), options.signal as AbortSignal);
    return undefined;
  }
  const isFolder = isOneOfMany || target.path.endsWith('/') || (await isHostFolder(target.path));
  return sandbox.files.download(path, isFolder ? within(join, target.path, path) : target.path, options);
}

/** The place of a source in a folder: by its name, unless its content alone is meant. */
function within(together: typeof join, folder: string, source: string): string {
  const name = basename(source);
  return name === '.' || name === '..' || name === '' ? folder : together(folder, name);
}

async function print(sandbox: Sandbox, path: string): Promise<void> {
  for await (const data of sandbox.files.stream(path)) await carry({ stream: 'stdout', data });
}

async function isHostFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (entry) => entry.isDirectory(),
    () => false,
  );
}

/** Also by way of links, which `stat` does not follow. */
async function isSandboxFolder(sandbox: Sandbox, path: string, links = 8): Promise<boolean> {
  const entry = await sandbox.files.stat(path);
  if (entry?.type !== 'symlink' || links === 0) return entry?.type === 'dir';
  return isSandboxFolder(sandbox, posix.resolve(posix.dirname(entry.path), entry.target ?? ''), links - 1);
}

function far({
  files,
  bytes: count,
  totalBytes,
  path,
}: Parameters<NonNullable<TransferOptions['onProgress']>>[0]): string {
  const of = totalBytes === undefined ? '' : ` of ${bytes(totalBytes)}`;
  return `${files} ${files === 1 ? 'file' : 'files'}, ${bytes(count)}${of}  ${path}`;
}

function tell(reports: readonly TransferReport[], flags: Given<typeof FLAGS>): void {
  const sum = (what: 'files' | 'dirs' | 'links' | 'bytes' | 'durationMs') =>
    reports.reduce((all, report) => all + report[what], 0);
  const skipped = reports.flatMap((report) => report.skipped);
  if (flags.json) {
    const [files, dirs, links] = [sum('files'), sum('dirs'), sum('links')];
    printJson({ files, dirs, links, bytes: sum('bytes'), skipped, durationMs: sum('durationMs') });
    return;
  }
  for (const { path, reason } of skipped) say(`left out: ${path}: ${reason}`);
}
