/** The program of a run, and the host files for it. */
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import type { RunRequest } from '../options';
import { UsageError } from './command';

export const RUNTIMES = ['python', 'node', 'bash'] as const;

export type Runtime = (typeof RUNTIMES)[number];

const BY_EXTENSION: Record<string, Runtime> = {
  '.py': 'python',
  '.js': 'node',
  '.cjs': 'node',
  '.mjs': 'node',
  '.sh': 'bash',
  '.bash': 'bash',
};

type Program = Pick<RunRequest, 'runtime' | 'code' | 'files'>;

/** The program to run: a file, or standard input for `-`. */
export async function programOf(file: string, runtime: Runtime | undefined): Promise<Program> {
  if (file === '-') return { runtime, code: await wholeInput() };
  const code = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    // For a folder, the error of the system has no path.
    throw Object.assign(error, { path: file });
  });
  const chosen = runtime ?? BY_EXTENSION[path.extname(file).toLowerCase()] ?? fromFirstLine(code);
  if (chosen === undefined) {
    throw new UsageError(`cannot tell the runtime of ${JSON.stringify(file)}: give --runtime ${RUNTIMES.join(' or ')}`);
  }
  // By its name Node takes the program for CommonJS; a module needs a name of its own.
  if (path.extname(file) === '.mjs')
    return { runtime: chosen, code: "import('./main.mjs');", files: { 'main.mjs': code } };
  return { runtime: chosen, code };
}

function fromFirstLine(code: string): Runtime | undefined {
  const [, program = ''] = /^#!.*?\b(python|node|bash|sh)[\d.]*\b/.exec(code) ?? [];
  return program === 'sh' ? 'bash' : RUNTIMES.find((runtime) => runtime === program);
}

async function wholeInput(): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

/** `--file path[=name]`: a file, or a folder with everything below it; by default under the same path in the workdir. */
export async function filesFrom(given: readonly string[] = []): Promise<Record<string, Uint8Array>> {
  const files: Record<string, Uint8Array> = {};
  for (const entry of given) {
    const [, from = '', name] = /^(.*?)(?:=(.*))?$/s.exec(entry) ?? [];
    await collect(from, name || nameOf(from), files);
  }
  return files;
}

/** A path below the current folder keeps its folders, so that the program finds it as it would here. */
function nameOf(from: string): string {
  const below = path.relative('.', from);
  if (below === '') return '.';
  const isOutside = below.startsWith('..') || path.isAbsolute(below);
  return isOutside ? path.basename(below) : below.split(path.sep).join('/');
}

async function collect(from: string, name: string, files: Record<string, Uint8Array>): Promise<void> {
  if (!(await stat(from)).isDirectory()) {
    files[name.endsWith('/') ? `${name}${path.basename(from)}` : name] = await readFile(from);
    return;
  }
  for (const entry of await readdir(from, { withFileTypes: true })) {
    // A link may lead anywhere: only named paths are read through one.
    if (entry.isFile() || entry.isDirectory())
      await collect(path.join(from, entry.name), path.posix.join(name, entry.name), files);
  }
}
