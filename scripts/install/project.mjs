// One empty project: what a user has who has just made a folder. Its programs see a home of its own, with the throw-away
// registry in `.npmrc`, and nothing of the checkout.

import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { run } from '../child.mjs';
import { ROOT } from '../workspace.mjs';

const SOURCES = path.join(ROOT, '__test__/install');
/** A guard against what hangs, not a measure. */
const PATIENCE_MS = 300_000;

export class Project {
  /**
   * @param {string} folder
   * @param {Record<string, string>} env
   */
  constructor(folder, env) {
    this.folder = folder;
    this.env = env;
    /** Sandboxes that were opened from it, by what it printed. */
    this.sandboxes = [];
    mkdirSync(folder, { recursive: true });
  }

  /** @param {object} [manifest] what package.json says beside that it is private */
  write(manifest = {}) {
    this.file('package.json', JSON.stringify({ private: true, ...manifest }));
    return this;
  }

  file(name, text) {
    writeFileSync(path.join(this.folder, name), text);
  }

  /** Copies the files of a consumer, and what all share. */
  copy(consumer) {
    for (const source of [consumer, 'shared']) cpSync(path.join(SOURCES, source), this.folder, { recursive: true });
  }

  path(...names) {
    return path.join(this.folder, ...names);
  }

  /** At once, before it is ever written to a disk. */
  remove() {
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Names of installed packages that begin with ours. */
  installed() {
    const modules = this.path('node_modules');
    return existsSync(modules) ? readdirSync(modules).filter((name) => name.startsWith('cofferdam')) : [];
  }

  /** @returns {Promise<string>} all it printed; rejects unless it ends by itself, with 0, without a word of complaint */
  async run(program, args, { env = {} } = {}) {
    const lines = [];
    try {
      await run(program, args, {
        cwd: this.folder,
        env: { ...this.env, ...env },
        output: 'keep',
        onLine: (line) => lines.push(line),
        timeoutMs: PATIENCE_MS,
      });
    } catch (error) {
      error.message = [error.message, ...lines.slice(-40)].join('\n  ');
      throw error;
    } finally {
      for (const line of lines) this.sandboxes.push(...(line.match(/(?<=visited )sbx_\w+/) ?? []));
    }
    return lines.join('\n');
  }

  /** As {@link run}, for a program that opens sandboxes: an end with 0 that opened none is no success. */
  async visit(program, args, options) {
    const before = this.sandboxes.length;
    const output = await this.run(program, args, options);
    if (this.sandboxes.length === before) throw new Error(`\`${program}\` opened no sandbox:\n  ${output}`);
    return output;
  }

  /** For a program that may fail: what it printed, and how it failed. */
  async attempt(program, args, options) {
    try {
      const output = await this.run(program, args, options);
      return { lines: output.split('\n') };
    } catch (failure) {
      return { lines: failure.message.split('\n').map((line) => line.trim()), failure };
    }
  }

  /** For a program that must fail: what it said. */
  async failure(program, args, options) {
    const { failure } = await this.attempt(program, args, options);
    if (!failure) throw new Error(`\`${program} ${args.join(' ')}\` was to fail, and did not`);
    return failure.message;
  }
}
