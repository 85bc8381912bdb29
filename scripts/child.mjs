// Child processes of a command. Each leads its own process group, so that a Ctrl-C on the terminal reaches
// only us and we end the whole tree in the right order.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { assertNotEnding, atEnd } from './lifetime.mjs';

const TERM_GRACE_MS = 10_000;
const KEPT_LINES = 40;

/** Spawns a process in a group of its own. The caller decides how it ends. */
export function launch(command, args, options) {
  assertNotEnding();
  return spawn(command, args, { ...options, detached: true });
}

/** Resolves to `{ code, signal }` when the process is gone; rejects when it could not be started. */
export async function exited(child) {
  const [code, signal] = await once(child, 'exit');
  return { code, signal };
}

/**
 * Runs a program to its end and rejects unless it exits with 0.
 *
 * @param {object} [options]
 * @param {Record<string, string>} [options.env] added to our own environment
 * @param {string} [options.cwd]
 * @param {'show' | 'keep' | 'hold'} [options.output] `show` passes it through; `keep` is silent and puts the last
 *   lines in the error; `hold` shows all of it when the program has ended
 * @param {number} [options.nice] how far it steps back behind what runs beside it
 * @param {(line: string) => void} [options.onLine] with `keep`: gets each line of stdout instead
 * @param {number} [options.timeoutMs] a hang guard: what still runs after so long is ended, and that is an error
 * @param {'kill' | 'finish'} [options.interrupt] what an ending command does with it: `finish` is for work
 *   that must not be cut in half (dpkg)
 */
export async function run(command, args, options = {}) {
  const { env = {}, cwd, output = 'show', nice, onLine, timeoutMs, interrupt = 'kill' } = options;
  const stream = output === 'show' ? 'inherit' : 'pipe';
  const [program, ...words] = nice ? ['nice', '-n', String(nice), command, ...args] : [command, ...args];
  const child = launch(program, words, {
    env: { ...process.env, ...env },
    cwd,
    stdio: ['ignore', stream, stream],
  });
  const exit = exited(child);
  const kept = [];
  const keep = (line) => kept.push(line) > KEPT_LINES && kept.shift();
  const held = output === 'hold' ? [gather(child.stdout), gather(child.stderr)] : [];
  const drained = output === 'keep' ? [eachLine(child.stdout, onLine ?? keep), eachLine(child.stderr, keep)] : [];

  const release = atEnd(() => (interrupt === 'finish' ? exit : endGroup(child, exit)));
  let hung = false;
  const endHung = () => {
    hung = true;
    endGroup(child, exit);
  };
  const guard = timeoutMs && setTimeout(endHung, timeoutMs);
  try {
    const { code, signal } = await exit;
    await Promise.all(drained);
    if (code !== 0 || hung) {
      const how = hung
        ? `was still running after ${timeoutMs / 1000} s`
        : `ended with ${signal ?? `exit code ${code}`}`;
      throw new Error([`\`${command}\` ${how}`, ...kept].join('\n  '));
    }
  } catch (error) {
    if (error.code === 'ENOENT') throw new Error(`\`${command}\` is not installed`);
    throw error;
  } finally {
    clearTimeout(guard);
    release();
    for (const text of await Promise.all(held)) process.stdout.write(text);
  }
}

async function eachLine(input, take) {
  for await (const line of createInterface({ input })) take(line);
}

async function gather(input) {
  const chunks = [];
  for await (const chunk of input) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function endGroup(child, exit) {
  signalGroup(child, 'SIGTERM');
  const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), TERM_GRACE_MS);
  await exit;
  clearTimeout(timer);
}

function signalGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
