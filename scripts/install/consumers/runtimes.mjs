// Runtimes that are not Node.js, each with its own installer.

import { MCP_SDK } from '../ground.mjs';
import { versionOf } from '../tools.mjs';

const { platform, arch } = process;

const bun = {
  name: 'Bun, every subpath',
  version: `Bun ${versionOf('bun')}`,
  async visit(ground) {
    const cpu = arch === 'arm64' ? 'aarch64' : arch;
    const program = ground.tools.path(`@oven/bun-${platform}-${cpu}/bin/bun`);
    const project = ground.project('bun', { consumer: 'esm' });
    await project.run(program, ['add', 'cofferdam', `${MCP_SDK}@${versionOf(MCP_SDK)}`]);
    await project.run(program, ['subpaths.mjs']);
    await project.visit(program, ['main.mjs']);
  },
};

const denoProgram = (ground) =>
  ground.tools.path(`@deno/${platform}-${arch}${platform === 'linux' ? '-glibc' : ''}/deno`);

/** As docs/install.md gives them. */
const PERMISSIONS = ['--no-prompt', '--allow-ffi', '--allow-env'];

const deno = [
  {
    name: 'Deno, node_modules, every subpath',
    version: `Deno ${versionOf('deno')}`,
    async visit(ground) {
      const project = await ground.installed('deno', { consumer: 'esm', with: [MCP_SDK] });
      const run = ['run', '--node-modules-dir=manual', ...PERMISSIONS];
      await project.run(denoProgram(ground), [...run, 'subpaths.mjs']);
      await project.visit(denoProgram(ground), [...run, 'main.mjs']);
    },
  },
  {
    name: 'Deno, npm: specifier',
    version: `Deno ${versionOf('deno')}`,
    async visit(ground) {
      // What was published a minute ago is too new for Deno by default.
      const project = ground.project('deno-specifier', { consumer: 'deno', manifest: null });
      await project.visit(denoProgram(ground), ['run', '--min-dep-age=0', ...PERMISSIONS, 'specifier.mjs']);
    },
  },
];

export const runtimes = [bun, ...deno];
