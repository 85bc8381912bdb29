// Node.js itself: both kinds of modules, every major that is maintained, and threads.

import path from 'node:path';
import { MCP_SDK } from '../ground.mjs';
import { NODE_MAJORS, versionOf } from '../tools.mjs';

const here = `Node.js ${process.versions.node}`;

export const node = [
  {
    name: 'CommonJS, every subpath',
    version: here,
    async visit(ground) {
      const project = await ground.installed('commonjs', { consumer: 'commonjs', with: [MCP_SDK] });
      await project.run(process.execPath, ['subpaths.cjs']);
      await project.visit(process.execPath, ['main.cjs']);
    },
  },
  {
    name: 'ES modules, every subpath',
    version: here,
    async visit(ground) {
      const project = await ground.installed('esm', { consumer: 'esm', with: [MCP_SDK] });
      await project.run(process.execPath, ['subpaths.mjs']);
      await project.visit(process.execPath, ['main.mjs']);
    },
  },
  ...NODE_MAJORS.map((major) => ({
    name: `Node.js ${major}: npm, CommonJS, ES modules`,
    version: `Node.js ${versionOf(`node-${major}`)}`,
    async visit(ground) {
      const program = ground.tools.node(major);
      // npm, too, runs on the Node.js that comes first.
      const env = { PATH: `${path.dirname(program)}:${process.env.PATH}` };
      const project = await ground.installed(`node-${major}`, { consumer: 'esm', env });
      project.copy('commonjs');
      await project.visit(program, ['main.mjs']);
      await project.visit(program, ['main.cjs']);
    },
  })),
  {
    name: 'worker threads, two of five terminated midway',
    version: here,
    async visit(ground) {
      const project = await ground.installed('worker', { consumer: 'worker' });
      await project.visit(process.execPath, ['main.mjs']);
    },
  },
];
