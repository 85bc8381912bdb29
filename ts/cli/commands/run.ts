/** `cofferdam run`: runs a program in a sandbox of its own, which is removed afterwards. */
import type { RunResult } from '../../options';
import { writeArtifacts } from '../artifacts';
import { command, EXIT, type Flags, say, UsageError } from '../command';
import { exitCodeOf, notStarted } from '../ended';
import { ENGINE, managerFrom, orNothing } from '../engine';
import { writeChunk } from '../output';
import { oneOf, pairs, time } from '../parse';
import { JSON_FLAG, printJson } from '../print';
import { filesFrom, programOf, RUNTIMES } from '../program-file';
import { limitsFrom, packagesFrom, SANDBOX } from '../sandbox-options';
import { stopSignal } from '../stop';

/** Of each stream, with --json. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** Each; the API itself returns no more than this in all. */
const MAX_ARTIFACT_BYTES = 256 * 1024 * 1024;

const MAX_ARTIFACTS = 10_000;

const inOut = 'Files';

const FLAGS = {
  code: { type: 'string', short: 'c', about: 'The source of the program' },
  runtime: {
    type: 'string',
    short: 'r',
    value: RUNTIMES.join('|'),
    about: "What runs it (default: by the file's extension or first line, else python)",
    complete: RUNTIMES,
  },
  timeout: { type: 'string', short: 't', value: 'time', about: 'End it after this long: 30s, never (default: 2m)' },
  ...JSON_FLAG,
  file: {
    type: 'string',
    short: 'f',
    multiple: true,
    value: 'path[=name]',
    about: 'Copy a file or a folder into the workdir (default name: its relative path)',
    group: inOut,
    complete: 'file',
  },
  artifact: {
    type: 'string',
    short: 'a',
    multiple: true,
    value: 'glob',
    about: "Copy back files of the workdir that match: 'out/**/*.png'",
    group: inOut,
  },
  out: {
    type: 'string',
    short: 'o',
    value: 'folder',
    about: 'Where to copy them (default: the current folder)',
    group: inOut,
    complete: 'folder',
  },
  force: { type: 'boolean', about: 'Replace existing files', group: inOut },
  ...SANDBOX,
  image: { ...SANDBOX.image, about: "Any image that has the runtime (default: the runtime's own)" },
  ...ENGINE,
} as const satisfies Flags;

export const run = command({
  name: 'run',
  summary: 'Run a program in a sandbox of its own, which is removed afterwards',
  about: `Runs a program in a sandbox of its own, prints its output as it arrives, and exits with its exit code. --file copies files
in, --artifact copies them back; nothing else is shared with this machine.`,
  operands: [
    {
      name: 'file',
      about: 'The program: .py, .js, .mjs, .cjs, .sh; - for standard input',
      optional: true,
      complete: 'file',
    },
  ],
  tail: { name: 'args', about: 'Its arguments, best after --', optional: true, many: true },
  flags: FLAGS,
  examples: [
    { line: "cofferdam run --code 'print(6 * 7)'", about: 'Python by default' },
    { line: 'cofferdam run main.py -- --verbose input.csv', about: 'A file and its arguments' },
    {
      line: "cofferdam run plot.py --file data.csv --package pip:matplotlib --artifact '*.png' --out plots",
      about: 'Files in and out',
    },
    { line: "echo 'console.log(process.version)' | cofferdam run --runtime node -", about: 'From standard input' },
  ],
  async run({ flags, operands: [file], tail }) {
    if (flags.code !== undefined && file !== undefined) throw new UsageError('give --code or a file, not both');
    if (flags.artifact === undefined && (flags.out !== undefined || flags.force)) {
      throw new UsageError(`--${flags.out === undefined ? 'force' : 'out'} is for --artifact`);
    }
    const runtime = flags.runtime === undefined ? undefined : oneOf('--runtime', RUNTIMES, flags.runtime);
    if (flags.code === undefined && file === undefined && process.stdin.isTTY) {
      throw new UsageError('nothing to run: give a file, --code, or - for standard input');
    }
    const program = flags.code === undefined ? await programOf(file ?? '-', runtime) : { runtime, code: flags.code };
    const request = {
      ...program,
      image: flags.image,
      args: [...tail],
      env: pairs('--env', flags.env),
      files: { ...(await filesFrom(flags.file)), ...program.files },
      packages: packagesFrom(flags.package),
      limits: limitsFrom(flags),
      network: flags.network ?? false,
      artifacts: flags.artifact,
      timeoutMs: time('--timeout', flags.timeout),
      maxOutputBytes: MAX_OUTPUT_BYTES,
      maxArtifactBytes: MAX_ARTIFACT_BYTES,
      maxArtifacts: MAX_ARTIFACTS,
      // JSON is one document, printed at the end.
      ...(flags.json ? {} : { onStdout: printing('stdout'), onStderr: printing('stderr') }),
    };
    const signal = stopSignal();
    // No one could find it again: if we are killed, it ends soon.
    const manager = managerFrom(flags, process.env.COFFERDAM_ORPHAN_TIMEOUT ? {} : { orphanTimeoutMs: 10_000 });
    try {
      const result = await orNothing(manager, manager.run(request), signal);
      const { isWhole } = await (flags.json ? asJson(result, flags) : writeOut(result, flags));
      const exitCode = exitCodeOf(result, flags.timeout ?? '2m');
      return exitCode === EXIT.ok && !isWhole ? EXIT.failed : exitCode;
    } catch (error) {
      return notStarted(error);
    }
  },
});

type Where = { readonly out?: string; readonly force?: boolean };

/** Prints as fast as our reader reads. */
function printing(stream: 'stdout' | 'stderr') {
  return (text: string) => writeChunk({ stream, data: Buffer.from(text) });
}

/** Without --out, the files are in the JSON itself. */
async function asJson(result: RunResult, where: Where): Promise<{ isWhole: boolean }> {
  if (where.out !== undefined) {
    const { artifacts, isWhole } = await writeOut(result, where);
    printJson({ ...result, artifacts });
    return { isWhole };
  }
  const artifacts = result.artifacts.map(({ content, ...artifact }) => ({
    ...artifact,
    base64: content && Buffer.from(content).toString('base64'),
  }));
  printJson({ ...result, artifacts });
  return { isWhole: result.artifacts.every(({ omitted }) => omitted === undefined) };
}

/** `isWhole`: whether all requested files were written. */
async function writeOut(result: RunResult, { out = '.', force }: Where) {
  const artifacts = await writeArtifacts(result.artifacts, out, force ? 'replace' : 'keep');
  const left = artifacts.filter(({ file }) => file === null);
  for (const { path, omitted } of left) say(`skipped ${path}: ${omitted}`);
  return { artifacts, isWhole: left.length === 0 };
}
