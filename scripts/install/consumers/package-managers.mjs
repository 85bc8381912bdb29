// Package managers, each with its own idea of where a package lies, and npm with what people forbid it.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { exact, MCP_SDK } from '../ground.mjs';
import { PLATFORM_PACKAGES } from '../release.mjs';
import { versionOf } from '../tools.mjs';

const visitBoth = async (project) => {
  project.copy('commonjs');
  await project.visit(process.execPath, ['main.mjs']);
  await project.visit(process.execPath, ['main.cjs']);
};

export const packageManagers = [
  {
    name: 'npm --ignore-scripts, one platform package',
    version: 'npm',
    async visit(ground) {
      const project = await ground.installed('npm', { consumer: 'esm', flags: ['--ignore-scripts'] });
      const platforms = project.installed().filter((name) => PLATFORM_PACKAGES.includes(name));
      assert.equal(platforms.length, 1, `one platform package, not ${platforms.join(', ') || 'none'}`);
      await visitBoth(project);
    },
  },
  {
    name: 'npm --omit=optional: the error says what to do',
    version: 'npm',
    async visit(ground) {
      const project = await ground.installed('npm-omit', { consumer: 'esm', flags: ['--omit=optional'] });
      const said = await project.failure(process.execPath, ['main.mjs']);
      assert.match(said, /install without --omit=optional/);
      const [, ...cure] = said.match(/run "(npm) (install) (cofferdam-[\w-]+@[\w.+-]+)"/) ?? [];
      assert.equal(cure.length, 3, `the error names no command that helps: ${said}`);
      await project.run(cure[0], cure.slice(1));
      await project.visit(process.execPath, ['main.mjs']);
    },
  },
  {
    name: 'pnpm, isolated node_modules, every subpath',
    version: `pnpm ${versionOf('pnpm')}`,
    async visit(ground) {
      const project = ground.project('pnpm', { consumer: 'esm' });
      await project.run(process.execPath, [ground.tools.path('pnpm/bin/pnpm.mjs'), 'add', 'cofferdam', exact(MCP_SDK)]);
      assert(existsSync(project.path('node_modules/.pnpm')), 'pnpm made no store of its own');
      await project.run(process.execPath, ['subpaths.mjs']);
      await visitBoth(project);
    },
  },
  ...['node-modules', 'pnp'].map((linker) => ({
    name: `Yarn, ${linker}, every subpath`,
    version: `Yarn ${versionOf('@yarnpkg/cli-dist')}`,
    async visit(ground) {
      const project = ground.project(`yarn-${linker}`, { consumer: 'esm' });
      const settings = {
        npmRegistryServer: ground.registry.url,
        unsafeHttpWhitelist: ['127.0.0.1'],
        nodeLinker: linker,
      };
      // What was published a minute ago is too new for Yarn by default.
      project.file('.yarnrc.yml', JSON.stringify({ ...settings, enableTelemetry: false, npmMinimalAgeGate: 0 }));
      const yarn = ground.tools.path('@yarnpkg/cli-dist/bin/yarn.js');
      await project.run(process.execPath, [yarn, 'add', 'cofferdam', exact(MCP_SDK)]);
      await project.run(process.execPath, [yarn, 'node', 'subpaths.mjs']);
      await project.visit(process.execPath, [yarn, 'node', 'main.mjs']);
    },
  })),
];
