// `dist/` as it is shipped: the modules behind the public entries in a few minified files, and the declarations that
// those entries reach. What tests and a checkout use is the plain output of tsc; this is the same code at a third of
// the size.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { rolldown } from 'rolldown';
import { ROOT } from '../workspace.mjs';
import { manifest } from './targets.mjs';

/** `index`, `ai/index`, …: every file of dist/ that package.json names. */
const ENTRIES = [...new Set(JSON.stringify([manifest.exports, manifest.bin]).match(/(?<="\.\/dist\/)[^"]+(?=\.js")/g))];

export async function bundle(dist) {
  declare(dist);
  const build = await rolldown({
    input: Object.fromEntries(ENTRIES.map((entry) => [entry, path.join(ROOT, 'ts', `${entry}.ts`)])),
    platform: 'node',
    // Packages are the user's own, and package.json is read where it lies.
    external: (id) => (!id.startsWith('.') && !path.isAbsolute(id)) || id.endsWith('package.json'),
  });
  const { output } = await build.write({
    dir: dist,
    format: 'cjs',
    exports: 'named',
    // Names of classes are seen by users, in what console.log shows of an error or a sandbox; those of functions are not.
    minify: { compress: true, codegen: true, mangle: { keepNames: { class: true, function: false } } },
    // Two below the package's own folder, where the sources look for package.json and for an addon.
    chunkFileNames: 'internal/[name].js',
  });
  await build.close();
  for (const { fileName, code } of output) {
    const strays = [...(code ?? '').matchAll(/require\([`"']((?:\.\.?\/)[^`"'$]*)[`"']\)/g)].filter(
      ([, id]) => !existsSync(path.resolve(dist, path.dirname(fileName), id)) && !id.endsWith('/package.json'),
    );
    if (strays.length) throw new Error(`${fileName} requires what is not shipped: ${strays.map(([, id]) => id)}`);
  }
}

/** Lets tsc write all declarations, and removes those that nobody can import. */
function declare(dist) {
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = ['-p', 'tsconfig.json', '--emitDeclarationOnly', '--outDir', dist];
  execFileSync(process.execPath, [tsc, ...options], { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
  const reached = new Set();
  const waiting = ENTRIES.filter((entry) => !entry.startsWith('cli/')).map((entry) => path.join(dist, `${entry}.d.ts`));
  for (let file = waiting.pop(); file; file = waiting.pop()) {
    if (reached.has(file)) continue;
    reached.add(file);
    for (const [, id] of readFileSync(file, 'utf8').matchAll(/(?:from |import\(|import )['"](\.[^'"]*)['"]/g)) {
      const base = path.resolve(path.dirname(file), id);
      waiting.push(existsSync(`${base}.d.ts`) ? `${base}.d.ts` : path.join(base, 'index.d.ts'));
    }
  }
  for (const file of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const name = path.join(file.parentPath, file.name);
    if (file.isFile() && !reached.has(name)) rmSync(name);
  }
  for (const file of reached) writeFileSync(file, indentedByTabs(readFileSync(file, 'utf8')));
}

/** The compiler indents by four spaces, which is a twentieth of all declarations. */
function indentedByTabs(text) {
  return text.replace(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4));
}
