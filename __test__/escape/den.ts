/** A program with sandboxes, in a process of its own under its own user, and the probe on both sides of the wall. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, closeSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, openSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { getSystemErrorName } from 'node:util';
import type { EngineInfo, ExecResult, Limits, SandboxStats } from 'cofferdam';
import { Witness } from './witness';
import type { World } from './worlds';

const ROOT = path.resolve(__dirname, '../..');
const PROBE =
  process.env.COFFERDAM_TEST_PROBE ?? path.join(ROOT, 'target/probe/x86_64-unknown-linux-gnu/release/probe');

/** Where it is in a sandbox. */
const INSIDE = '/workspace/probe';

/** What came of an attempt. */
export type Answer = { got: unknown } | { refused: string; at: string } | { killed: string };

/** Whom an attempt runs as in a sandbox. */
export type BoxUser = 'root' | 'ordinary';
const USERS: Record<BoxUser, string> = { root: '0:0', ordinary: '4321:4321' };

export interface Bomb {
  /** How much it got; `null` where it was ended before it had all. */
  taken: number | null;
  /** Resolves when somebody else ends it. */
  ended: () => Promise<ExecResult>;
  release: () => Promise<ExecResult>;
}

export class Den {
  /** Everything of it on disk; removed with it. */
  readonly folder: string;
  readonly witness: Witness;
  /** Where a sandbox's users are all one, there is only root. */
  users: BoxUser[] = ['root'];
  sandbox = '';
  #resident!: ChildProcess;
  #next = 0;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (error: unknown) => void }>();

  constructor(readonly world: World) {
    // What an ordinary user cannot reach in the checkout, it can reach here.
    this.folder = mkdtempSync(path.join(os.tmpdir(), 'cofferdam-den-'));
    chownSync(this.folder, world.uid, world.uid);
    for (const name of ['dist', 'package.json', `cofferdam.linux-${process.arch}-gnu.node`]) {
      cpSync(path.join(ROOT, name), path.join(this.folder, name), { recursive: true });
    }
    copyFileSync(path.join(__dirname, 'resident.cjs'), path.join(this.folder, 'resident.cjs'));
    copyFileSync(PROBE, this.probe);
    const home = path.join(this.folder, 'home');
    mkdirSync(home, { mode: 0o700 });
    chownSync(home, world.uid, world.uid);
    this.witness = new Witness(home, world.uid);
  }

  get isRoot(): boolean {
    return this.world.uid === 0;
  }

  /** Where sandboxes of namespaces are kept on the host. */
  get state(): string {
    return path.join(this.witness.home, 'state');
  }

  get probe(): string {
    return path.join(this.folder, 'probe');
  }

  /** The words that run a program as the world's user. */
  #as(command: string[]): [string, string[]] {
    const { uid } = this.world;
    const other =
      uid === process.getuid?.() ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--'];
    const [program, ...words] = [...other, ...command] as [string, ...string[]];
    return [program, words];
  }

  get #environment(): NodeJS.ProcessEnv {
    const { HOME: _, XDG_RUNTIME_DIR: __, ...inherited } = process.env;
    const { home, token } = this.witness;
    const own = { HOME: home, TMPDIR: home, COFFERDAM_STATE: this.state, COFFERDAM_WITNESS: token };
    return { ...inherited, ...own };
  }

  async start(limits: Limits = {}): Promise<this> {
    await this.witness.start((command) => this.#as(command));
    const secret = openSync(this.witness.file, 'r');
    const options = JSON.stringify({ backend: this.world.backend, defaults: { image: this.world.image } });
    const program = [process.execPath, path.join(this.folder, 'resident.cjs'), options, this.witness.token];
    const [command, words] = this.#as([this.probe, 'leash', ...program]);
    // The fourth descriptor is one that the program never meant for anybody.
    this.#resident = spawn(command, words, {
      stdio: ['pipe', 'pipe', 'inherit', secret],
      env: this.#environment,
      cwd: this.witness.home,
    });
    closeSync(secret);
    createInterface({ input: this.#resident.stdout as NodeJS.ReadableStream }).on('line', (line) => this.#hear(line));
    this.#resident.on('exit', (code, signal) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the resident ended with ${code ?? signal}`));
    });
    this.sandbox = await this.open(limits);
    const ordinary = await this.ask<ExecResult>('exec', this.sandbox, [INSIDE, 'ids'], { user: USERS.ordinary }).catch(
      () => null,
    );
    if (ordinary?.ok) this.users = ['root', 'ordinary'];
    return this;
  }

  #hear(line: string): void {
    const { number, value, error } = JSON.parse(line);
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    if (error) waiting?.reject(Object.assign(new Error(error.message), error));
    else waiting?.resolve(value as never);
  }

  /** Asks the resident for one of its deeds. */
  ask<T>(deed: string, ...words: unknown[]): Promise<T> {
    const number = this.#next++;
    this.#resident.stdin?.write(`${JSON.stringify({ number, deed, words })}\n`);
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(number, { resolve: resolve as (value: never) => void, reject });
    });
  }

  /** A sandbox with the probe in it. */
  async open(limits: Limits = {}): Promise<string> {
    const sandbox = await this.ask<string>('open', { limits });
    await this.ask('put', sandbox, this.probe, INSIDE, 0o755);
    return sandbox;
  }

  info(): Promise<EngineInfo> {
    return this.ask('info');
  }

  stats(sandbox = this.sandbox): Promise<SandboxStats> {
    return this.ask('stats', sandbox);
  }

  /** An attempt in the sandbox. */
  async inside(words: string[], boxUser: BoxUser = 'root', sandbox = this.sandbox): Promise<Answer> {
    const options = { user: USERS[boxUser], timeoutMs: 20_000 };
    const result = await this.ask<ExecResult>('exec', sandbox, [INSIDE, ...words], options);
    if (result.signal && !result.stdout) return { killed: result.signal };
    return answerOf(result.stdout, `${words.join(' ')} in the sandbox: ${JSON.stringify(result)}`);
  }

  /** The same attempt outside, by the user who runs the program. */
  async outside(words: string[], options: { leash?: boolean } = {}): Promise<Answer> {
    const [command, all] = this.#as([this.probe, ...(options.leash ? ['leash', this.probe] : []), ...words]);
    return new Promise((resolve, reject) => {
      const child = execFile(
        command,
        all,
        { cwd: this.witness.home, env: this.#environment },
        (error, stdout, stderr) => {
          try {
            resolve(answerOf(stdout, `${words.join(' ')} outside: ${error?.message} ${stderr}`));
          } catch (broken) {
            reject(broken);
          }
        },
      );
      child.stdin?.end();
    });
  }

  /** Starts a bomb, and gives what it got once it has all it can get; it holds that until it is released. */
  async bomb(words: string[], sandbox: string): Promise<Bomb> {
    const argv = [INSIDE, 'bomb', ...words];
    const { execId, line } = await this.ask<{ execId: string; line: string }>('hold', sandbox, argv, {
      timeoutMs: 30_000,
    });
    const taken = line ? JSON.parse(line).got.taken : null;
    return { taken, ended: () => this.ask('wait', execId), release: () => this.ask('release', execId) };
  }

  async stop(): Promise<void> {
    if (this.#resident && this.#resident.exitCode === null) {
      const ended = once(this.#resident, 'exit');
      this.#resident.stdin?.end();
      await ended;
    }
    await this.witness.stop();
    // Deeper than Node can remove, where a sandbox has left something.
    execFileSync('rm', ['-rf', this.folder]);
  }
}

/** The last whole line: a probe that says nothing has not tried. */
function answerOf(stdout: string, context: string): Answer {
  const line = stdout.trim().split('\n').at(-1) ?? '';
  if (!line.startsWith('{')) throw new Error(`the probe did not answer: ${context}`);
  const answer = JSON.parse(line);
  return 'refused' in answer ? { refused: getSystemErrorName(-answer.refused), at: answer.at } : answer;
}
