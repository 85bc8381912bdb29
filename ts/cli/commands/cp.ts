/**
 * `cofferdam cp`: copies files and folders between the host and a sandbox.
 *
 * A target that is a folder gets the source under its name; `source/.` means the content of a folder: as in `docker cp`.
 */
import { stat } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import type { Sandbox } from '../../sandbox';
import type { TransferOptions, TransferReport } from '../../transfer';
import { command, EXIT, type Flags, type Given, say, UsageError } from '../command';
import { ENGINE, managerFrom } from '../engine';
import { findSandbox } from '../find';
import { writeChunk } from '../output';
import { type Place, placeOf } from '../place';
import { bytes, JSON_FLAG, printJson } from '../print';
import { ProgressLine } from '../progress-line';
import { stopSignal, unlessStopped } from '../stop';

const FLAGS = {
  gitignore: { type: 'boolean', about: 'Skip what the .gitignore files in a folder name' },
  exclude: {
    type: 'string',
    short: 'x',
    multiple: true,
    value: 'pattern',
    about: 'Skip this, as in a .gitignore',
  },
  sync: { type: 'boolean', about: 'Copy only what differs; remove nothing' },
  quiet: { type: 'boolean', short: 'q', about: 'Show no progress' },
  ...JSON_FLAG,
  ...ENGINE,
} as const satisfies Flags;

export const cp = command({
  name: 'cp',
  summary: 'Copy files and folders into a sandbox or out of it',
  about: `Copies files and folders between the host and a sandbox. Paths in a sandbox are written <sandbox>:<path>, absolute or
relative to its workdir. In an existing folder, each source gets its own name; source/. means the content of a folder.
For a single file, a source of - is our standard input, and a target of - our standard output.`,
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
      throw new UsageError('--json cannot be used with -: the standard streams hold the file itself');
    }
    const signal = stopSignal();
    const sandbox = await unlessStopped(findSandbox(managerFrom(flags), name), signal);
    const line = new ProgressLine(process.stderr);
    const options: TransferOptions = {
      gitignore: flags.gitignore,
      exclude: flags.exclude,
      sync: flags.sync,
      signal,
      onProgress: flags.quiet ? undefined : (progress) => line.show(progressText(progress)),
    };
    const reports: TransferReport[] = [];
    try {
      for (const source of sources) {
        const done = await copyOne(sandbox, source, target, sources.length > 1, options);
        if (done) reports.push(done);
      }
    } finally {
      line.finish();
    }
    report(reports, flags);
    return EXIT.ok;
  },
});

/** The sandbox of all places, which is on one side only. */
function theSandbox(sources: readonly Place[], target: Place): string {
  const ins = [...sources, target].filter((place) => place.kind === 'sandbox');
  const names = new Set(ins.map(({ sandbox }) => sandbox));
  const [name] = names;
  if (name === undefined) throw new UsageError('one side must be in a sandbox, as in default:path');
  const isOut = sources.every(({ kind }) => kind === 'sandbox');
  if (names.size > 1 || (target.kind === 'sandbox') === isOut || (target.kind !== 'sandbox' && !isOut)) {
    throw new UsageError('one side must be in a sandbox, and the other on this machine');
  }
  if (sources.length > 1 && [...sources, target].some(({ kind }) => kind === 'standard')) {
    throw new UsageError('- stands for one file, and there are several sources');
  }
  return name;
}

async function copyOne(
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
    // Fails here, with an error about the host.
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

/** Where a source goes in a folder: under its name, or into the folder itself for `source/.`. */
function within(together: typeof join, folder: string, source: string): string {
  const name = basename(source);
  return name === '.' || name === '..' || name === '' ? folder : together(folder, name);
}

async function print(sandbox: Sandbox, path: string): Promise<void> {
  for await (const data of sandbox.files.stream(path)) await writeChunk({ stream: 'stdout', data });
}

async function isHostFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (entry) => entry.isDirectory(),
    () => false,
  );
}

/** Follows links, which `stat` does not. */
async function isSandboxFolder(sandbox: Sandbox, path: string, links = 8): Promise<boolean> {
  const entry = await sandbox.files.stat(path);
  if (entry?.type !== 'symlink' || links === 0) return entry?.type === 'dir';
  return isSandboxFolder(sandbox, posix.resolve(posix.dirname(entry.path), entry.target ?? ''), links - 1);
}

function progressText({
  files,
  bytes: count,
  totalBytes,
  path,
}: Parameters<NonNullable<TransferOptions['onProgress']>>[0]): string {
  const of = totalBytes === undefined ? '' : ` of ${bytes(totalBytes)}`;
  return `${files} ${files === 1 ? 'file' : 'files'}, ${bytes(count)}${of}  ${path}`;
}

function report(reports: readonly TransferReport[], flags: Given<typeof FLAGS>): void {
  const sum = (what: 'files' | 'dirs' | 'links' | 'bytes' | 'durationMs') =>
    reports.reduce((all, each) => all + each[what], 0);
  const skipped = reports.flatMap((each) => each.skipped);
  if (flags.json) {
    const [files, dirs, links] = [sum('files'), sum('dirs'), sum('links')];
    printJson({ files, dirs, links, bytes: sum('bytes'), skipped, durationMs: sum('durationMs') });
    return;
  }
  for (const { path, reason } of skipped) say(`skipped ${path}: ${reason}`);
}
