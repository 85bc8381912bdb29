/**
 * Programs of their own beside the tests, in `programs/`: what they use exists as ES modules only, which jest does not
 * load. Each prints what it saw, as one line of JSON.
 */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export async function seenBy<T>(name: string, ...args: string[]): Promise<T> {
  const file = path.join(__dirname, 'programs', `${name}.mjs`);
  const { stdout } = await run(process.execPath, [file, ...args], { timeout: 55_000, maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout) as T;
}
