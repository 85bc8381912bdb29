/** `cofferdam run`: a program in a sandbox of its own, which is gone afterwards. */
import type { RunResult } from '../../options';
import { writeArtifacts } from '../artifacts';
import { command, EXIT, type Flags, say, UsageError } from '../command';
import { exitCodeOf, notStarted } from '../ended';
import { ENGINE, managerFrom, orNothing } from '../engine';
import { carry } from '../output';
import { oneOf, pairs, time } from '../parse';
import { JSON_FLAG, printJson } from '../print';
import { filesFrom, programOf, RUNTIMES } from '../program-file';
import { limitsFrom, packagesFrom, SANDBOX } from '../sandbox-options';
import { stopSignal } from '../stop';

/** Of each stream, in JSON. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** Each; the API itself brings back no more than this in all. */
const MAX_ARTIFACT_BYTES = 256 * 1024 * 1024;

const MAX_ARTIFACTS = 10_000;

const inOut = 'Files';

const FLAGS = {
  code: { type: 'string', short: 'c', about: 'The program itself' },
  runtime: {
    type: 'string',
    short: 'r',
    value: RUNTIMES.join('|'),
    about: "What runs it; by the file's extension or first line, else python",
    complete: RUNTIMES,
  },
  timeout: { type: 'string', short: 't', value: 'time', about: 'End it after so long: 30s, never; 2m unless told' },
  ...JSON_FLAG,
  file: {
    type: 'string',
    short: 'f',
    multiple: true,
    value: 'path[=name]',
    about: 'Put a file or a folder into the workdir, by its path from here unless told',
    group: inOut,
    complete: 'file',
  },
  artifact: {
    type: 'string',
    short: 'a',
    multiple: true,
    value: 'glob',
    about: "Bring back what fits, of what it left in the workdir: 'out/**/*.png'",
    group: inOut,
  },
  out: {
    type: 'string',
    short: 'o',
    value: 'folder',
    about: 'Where to; here unless told',
    group: inOut,
    complete: 'folder',
  },
  force: { type: 'boolean', about: 'Replace files that are there; they are kept unless told', group: inOut },
  ...SANDBOX,
  image: { ...SANDBOX.image, about: "Any image that has the runtime; the runtime's own unless told" },
  ...ENGINE,
} as const satisfies Flags;

export const run = command({
  name: 'run',
  summary: 'Run a program in a sandbox of its own, which is gone afterwards',
  about: `Runs a program in a sandbox of its own and prints what it prints, as it comes. Its exit code is ours. Files go in with
--file and come back with --artifact; nothing else is shared with this machine.`,
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
    { line: "cofferdam run --code 'print(6 * 7)'", about: 'Python, unless told' },
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
      throw new UsageError('what shall run? Give a file, --code, or - for standard input');
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
      // JSON is one document, at the end.
      ...(flags.json ? {} : { onStdout: printing('stdout'), onStderr: printing('stderr') }),
    };
    const signal = stopSignal();
    // It is nobody's to find again: should we be killed, it ends soon.
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

/** As fast as it is read from us, and no faster. */
function printing(stream: 'stdout' | 'stderr') {
  return (text: string) => carry({ stream, data: Buffer.from(text) });
}

/** Where no folder was named, files are in the JSON itself. */
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

/** Says whether all files that were asked for are there. */
async function writeOut(result: RunResult, { out = '.', force }: Where) {
  const artifacts = await writeArtifacts(result.artifacts, out, force ? 'replace' : 'keep');
  const left = artifacts.filter(({ file }) => file === null);
  for (const { path, omitted } of left) say(`left out: ${path}: ${omitted}`);
  return { artifacts, isWhole: left.length === 0 };
}
