// Code that a bundler has been through: with cofferdam left outside, which is the way to do it, and with cofferdam inside.

import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { PLATFORM_PACKAGES } from '../release.mjs';
import { versionOf } from '../tools.mjs';

const version = `esbuild ${versionOf('esbuild')}`;

async function bundled(ground, name, entry, flags) {
  const project = await ground.installed(name, { consumer: 'esm' });
  project.copy('commonjs');
  const esbuild = ground.tools.path('esbuild/bin/esbuild');
  const always = ['--bundle', '--platform=node', '--target=node20', '--log-level=warning'];
  await project.run(process.execPath, [esbuild, entry, ...always, ...flags]);
  return project;
}

export const bundlers = [
  {
    name: 'esbuild, cofferdam external, CommonJS',
    version,
    async visit(ground) {
      const flags = ['--external:cofferdam', '--outfile=out/main.cjs'];
      const project = await bundled(ground, 'esbuild-cjs', 'main.cjs', flags);
      await project.visit(process.execPath, ['out/main.cjs']);
    },
  },
  {
    name: 'esbuild, packages external, ES modules',
    version,
    async visit(ground) {
      const flags = ['--packages=external', '--external:./visit.cjs', '--format=esm', '--outfile=bundle.mjs'];
      const project = await bundled(ground, 'esbuild-esm', 'main.mjs', flags);
      await project.visit(process.execPath, ['bundle.mjs']);
    },
  },
  {
    name: 'esbuild, cofferdam inside, .node beside the bundle',
    version,
    async visit(ground) {
      const project = await bundled(ground, 'esbuild-inside', 'main.cjs', ['--outfile=out/main.cjs']);
      const alone = ground.project('esbuild-alone', { manifest: null });
      cpSync(project.path('out/main.cjs'), alone.path('main.cjs'));
      const said = await alone.failure(process.execPath, ['main.cjs']);
      assert.match(said, /keep cofferdam external, or copy the \.node file of cofferdam-[\w-]+ beside the bundle/);
      const [platform] = project.installed().filter((name) => PLATFORM_PACKAGES.includes(name));
      cpSync(project.path('node_modules', platform), alone.folder, { recursive: true });
      await alone.visit(process.execPath, ['main.cjs']);
    },
  },
];
