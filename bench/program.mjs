// A program on the host, run to its end: what the docker CLI and the host's own limit are made of.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * @param {string} program
 * @param {string[]} args
 * @param {{ env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<{ exitCode: number | null, stdout: string, stderr: string }>}
 */
export async function runProgram(program, args, options = {}) {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const stdout = [];
  const stderr = [];
  child.stdout.on('data', (chunk) => stdout.push(chunk));
  child.stderr.on('data', (chunk) => stderr.push(chunk));
  const [exitCode] = await once(child, 'close');
  return { exitCode, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
}

/** The same, for one that must exit with 0; resolves to what it printed. */
export async function output(program, args, options) {
  const { exitCode, stdout, stderr } = await runProgram(program, args, options);
  if (exitCode !== 0) throw new Error(`\`${program} ${args.join(' ')}\` exited with ${exitCode}: ${stderr.trim()}`);
  return stdout;
}
