// `npm run docs:api`: writes docs/api from the built types. `--check` writes nothing, and fails when the pages that are
// committed are not what it would write, or when something public has no doc comment or no example.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { run } from './child.mjs';
import { command } from './lifetime.mjs';
import { mendAnchors } from './reference/anchors.mjs';
import { undocumented } from './reference/coverage.mjs';
import { indexPage } from './reference/index-page.mjs';
import { differences, readPages, writePages } from './reference/pages.mjs';
import { tidy } from './reference/tidy.mjs';
import { ROOT } from './workspace.mjs';

const TOOL = path.join(ROOT, 'scripts/reference');
const PAGES = path.join(ROOT, 'docs/api');

/** TypeDoc, installed once per set of versions: too heavy for everybody who installs this checkout. */
async function ensureTypedoc() {
  const manifest = readFileSync(path.join(TOOL, 'package.json'));
  const lock = readFileSync(path.join(TOOL, 'package-lock.json'));
  const version = createHash('sha256').update(manifest).update(lock).digest('hex').slice(0, 12);
  const folder = path.join(ROOT, '.cache', `reference-${version}`);
  const done = path.join(folder, 'installed');
  if (!existsSync(done)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, 'package.json'), manifest);
    writeFileSync(path.join(folder, 'package-lock.json'), lock);
    await run('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: folder, output: 'keep' });
    writeFileSync(done, '');
  }
  // Beside its dependencies, so that they are found.
  writeFileSync(path.join(folder, 'theme.mjs'), readFileSync(path.join(TOOL, 'theme.mjs')));
  return folder;
}

/** The types of each subpath in `exports`, the root first. */
function entryPoints() {
  const { exports } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  const subpaths = Object.values(exports).flatMap(({ types }) => types ?? []);
  return ['./dist/index.d.ts', ...subpaths].map((types) => path.join(ROOT, types));
}

async function generate() {
  const folder = await ensureTypedoc();
  const out = path.join(folder, `out-${process.pid}`);
  const tsconfig = path.join(folder, 'tsconfig.json');
  const options = path.join(folder, `options-${process.pid}.json`);
  const model = path.join(folder, `model-${process.pid}.json`);
  const { compilerOptions } = JSON.parse(readFileSync(path.join(ROOT, 'tsconfig.json'), 'utf8'));
  const typeRoots = [path.join(ROOT, 'node_modules/@types')];
  const compiler = {
    ...compilerOptions,
    rootDir: ROOT,
    outDir: undefined,
    declaration: false,
    noEmit: true,
    typeRoots,
  };
  writeFileSync(tsconfig, JSON.stringify({ compilerOptions: compiler, include: [path.join(ROOT, 'dist')] }));
  const layout = JSON.parse(readFileSync(path.join(TOOL, 'typedoc.json'), 'utf8'));
  const plugin = ['typedoc-plugin-markdown', path.join(folder, 'theme.mjs')];
  writeFileSync(options, JSON.stringify({ ...layout, entryPoints: entryPoints(), tsconfig, plugin }));
  try {
    const args = ['node_modules/typedoc/bin/typedoc', '--options', options, '--out', out, '--json', model];
    await run(process.execPath, args, { cwd: folder, output: 'keep' });
    const project = JSON.parse(readFileSync(model, 'utf8'));
    return {
      pages: mendAnchors(tidy(readPages(out))).set('README.md', indexPage(project)),
      missing: undocumented(project),
    };
  } finally {
    for (const leftover of [out, options, model]) rmSync(leftover, { recursive: true, force: true });
  }
}

await command(async () => {
  process.chdir(ROOT);
  if (!existsSync('dist/index.d.ts')) throw new Error('there is no dist/: run `npm run build:ts` first');
  const { pages, missing } = await generate();
  if (missing.length > 0) {
    throw new Error(`these are public and say too little of themselves:\n  ${missing.join('\n  ')}`);
  }
  if (!process.argv.includes('--check')) {
    writePages(PAGES, pages);
    console.log(`wrote ${pages.size} pages to docs/api`);
    return;
  }
  const stale = differences(readPages(PAGES), pages);
  if (stale.length > 0) {
    throw new Error(
      `docs/api is not what the types say; run \`npm run docs:api\` and commit it:\n  ${stale.join('\n  ')}`,
    );
  }
  console.log(`docs/api is up to date (${pages.size} pages)`);
});
