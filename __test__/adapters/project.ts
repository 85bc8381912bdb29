/** A user's project, with cofferdam as it is published and only the packages that are named. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export const ROOT = path.resolve(__dirname, '../..');

/** `packages`: name → which one of the checkout's it is. */
export function project(packages: Record<string, string> = {}): Disposable & { folder: string } {
  const folder = mkdtempSync(path.join(tmpdir(), 'cofferdam-project-'));
  const modules = path.join(folder, 'node_modules');
  // A copy, so that what it imports is looked for in this project and not in the checkout.
  const published = ['package.json', 'index.d.ts', 'index.d.mts', 'index.mjs', 'dist'];
  for (const name of published) {
    cpSync(path.join(ROOT, name), path.join(modules, 'cofferdam', name), { recursive: true });
  }
  const native = 'cofferdam.linux-x64-gnu.node';
  symlinkSync(path.join(ROOT, native), path.join(modules, 'cofferdam', native));
  const dependencies = { zod: 'zod', yaml: 'yaml', '@types/node': '@types/node', 'undici-types': 'undici-types' };
  for (const [name, installed] of Object.entries({ ...dependencies, ...packages })) {
    mkdirSync(path.dirname(path.join(modules, name)), { recursive: true });
    symlinkSync(path.join(ROOT, 'node_modules', installed), path.join(modules, name));
  }
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}');
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}
