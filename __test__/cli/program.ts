/** The compiled `cofferdam` program, run as a person or a script would run it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SandboxManager, type Scope } from 'cofferdam';
import { unique } from '../support';

export const MAIN = path.resolve(__dirname, '../../dist/cli/main.js');

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
  /** What it printed, exactly. */
  bytes: Buffer;
}

export interface Started {
  child: ChildProcess;
  /** What it has printed so far, on both streams. */
  seen(): string;
  ended: Promise<Ended>;
}

interface Options {
  input?: string | Uint8Array;
  env?: NodeJS.ProcessEnv;
  cwd?: string;
  /** Another one than that of the checkout. */
  main?: string;
}

const children: ChildProcess[] = [];

export function start(args: readonly string[], { input, env, cwd, main = MAIN }: Options = {}): Started {
  const child = spawn(process.execPath, [main, ...args], { env: { ...process.env, ...env }, cwd });
  children.push(child);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (piece) => out.push(piece));
  child.stderr.on('data', (piece) => err.push(piece));
  // A program that ends without reading its input is not our failure.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const ended = once(child, 'close').then(([code]) => {
    const bytes = Buffer.concat(out);
    return { code, bytes, stdout: bytes.toString(), stderr: Buffer.concat(err).toString() };
  });
  return { child, ended, seen: () => Buffer.concat([...out, ...err]).toString() };
}

export function cofferdam(args: readonly string[], options: Options = {}): Promise<Ended> {
  return start(args, options).ended;
}

/** A line of a shell that has the program in its PATH; what it prints on both streams is told together. */
export async function shell(line: string, cwd?: string): Promise<{ code: number; output: string }> {
  const script = `cofferdam() { ${JSON.stringify(process.execPath)} ${JSON.stringify(MAIN)} "$@"; }\n${line}`;
  const child = spawn('bash', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'], cwd });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (output += piece));
  const [code] = await once(child, 'close');
  return { code, output };
}

const folders: string[] = [];

/** A folder that is gone after the suite. */
export function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'cofferdam-cli-'));
  folders.push(made);
  return made;
}

const workflows: string[] = [];

/** Words for a scope of this suite's own, whose sandboxes are gone after it. */
export function scope(): { words: string[]; workflow: string } {
  const workflow = unique();
  workflows.push(workflow);
  return { words: ['--scope', `workflow:${workflow}`], workflow };
}

/** The id of a sandbox of this suite's own. */
export async function opened(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await cofferdam(['open', ...scope().words, ...words]);
  if (code !== 0) throw new Error(stderr);
  return stdout.trim();
}

afterAll(async () => {
  // Those of tests that failed.
  for (const child of children.splice(0)) if (child.exitCode === null) child.kill('SIGTERM');
  for (const made of folders.splice(0)) rmSync(made, { recursive: true });
  if (workflows.length === 0) return;
  const manager = new SandboxManager();
  await Promise.all(workflows.splice(0).map((workflow) => manager.endScope({ workflow } as Scope)));
  await manager.close();
});
