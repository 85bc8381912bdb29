/** The `doctor` command as its users run it: a program of its own, and what it says, in situations that are really so. */
import { execFile } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  chownSync,
  constants,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const repository = path.resolve(__dirname, '../..');
export const MAIN = path.join(repository, 'dist/cli/main.js');

export interface Finding {
  id: string;
  group: string;
  state: 'ok' | 'warning' | 'problem';
  text: string;
  cure: string | null;
  facts: Record<string, unknown>;
}

export interface Report {
  version: string;
  ok: boolean;
  verdict: string;
  backend: string | null;
  findings: Finding[];
  engines: { docker: Record<string, unknown> | null; namespaces: Record<string, unknown> | null };
}

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

export interface Situation {
  /** Variables to set; `undefined` takes one away. */
  env?: Record<string, string | undefined>;
  /** A program that runs it: `['unshare', '-m', …]`. */
  by?: readonly string[];
  main?: string;
  node?: string;
  /** Interrupts it, as Ctrl-C does. */
  stop?: AbortSignal;
}

/** Nothing of the environment of the tests says where sandboxes are. */
const NEUTRAL = { DOCKER_HOST: undefined, DOCKER_CONTEXT: undefined, COFFERDAM_BACKEND: undefined };

export function doctor(
  words: readonly string[],
  { env = {}, by = [], main = MAIN, node, stop }: Situation = {},
): Promise<Ended> {
  const [program = '', ...args] = [...by, node ?? process.execPath, main, 'doctor', ...words];
  const variables = Object.entries({ ...process.env, ...NEUTRAL, ...env }).filter(([, value]) => value !== undefined);
  return new Promise((resolve) => {
    const options = { env: Object.fromEntries(variables) as NodeJS.ProcessEnv, maxBuffer: 1 << 24 };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
    stop?.addEventListener('abort', () => child.kill('SIGINT'));
  });
}

export async function report(
  situation: Situation = {},
  words: readonly string[] = [],
): Promise<Report & { code: number }> {
  const { code, stdout, stderr } = await doctor(['--json', ...words], situation);
  try {
    return { code, ...(JSON.parse(stdout) as Report) };
  } catch {
    throw new Error(`doctor ended with ${code} and said: ${stdout}${stderr}`);
  }
}

/** The one finding of a name. */
export function finding({ findings }: Report, id: string): Finding {
  const found = findings.filter((candidate) => candidate.id === id);
  if (found.length !== 1 || !found[0])
    throw new Error(`${found.length} findings are called ${id}: ${JSON.stringify(findings, null, 1)}`);
  return found[0];
}

/** What only root of a Linux machine can make so. */
export const describeAsRoot = process.platform === 'linux' && process.getuid?.() === 0 ? describe : describe.skip;

/** In a mount namespace of its own, where a shell first does `before`. */
export function afterMounting(before: string): string[] {
  return ['unshare', '--mount', 'sh', '-euc', `${before}; exec "$@"`, 'sh'];
}

/** No socket of an engine is where engines have them: only files in memory are there. */
export const WITHOUT_SOCKETS = 'mount -t tmpfs tmpfs /run';

const NOBODY = 65534;

/** This package, and Node, where everybody may read them, with a home for the user nobody. */
export class Installed implements Disposable {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-doctor-'));
  readonly main = path.join(this.folder, 'dist/cli/main.js');
  readonly home = path.join(this.folder, 'home');
  readonly node: string;

  constructor({ addon }: { addon: boolean }) {
    chmodSync(this.folder, 0o755);
    for (const name of ['dist', 'package.json'])
      cpSync(path.join(repository, name), path.join(this.folder, name), { recursive: true });
    const addons = readdirSync(repository).filter((name) => addon && name.endsWith('.node'));
    for (const name of addons) cpSync(path.join(repository, name), path.join(this.folder, name));
    mkdirSync(this.home);
    chownSync(this.home, NOBODY, NOBODY);
    this.node = this.#nodeForAll();
  }

  /** Runs as the user nobody, who is in no group. */
  get asNobody(): Situation {
    const by = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--'];
    return {
      by,
      main: this.main,
      node: this.node,
      env: { HOME: this.home, USER: 'nobody', XDG_RUNTIME_DIR: undefined },
    };
  }

  /** One below a home of root's is out of reach for others. */
  #nodeForAll(): string {
    if (!process.execPath.startsWith('/root/')) return process.execPath;
    const copy = path.join(this.folder, 'node');
    cpSync(process.execPath, copy);
    accessSync(copy, constants.X_OK);
    return copy;
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
