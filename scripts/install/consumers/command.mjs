// The program `cofferdam`, as npx finds it: in a project, and in an empty folder.

import assert from 'node:assert/strict';
import { MCP_SDK } from '../ground.mjs';

export const command = [
  {
    name: 'npx cofferdam, in an empty folder',
    version: 'npx',
    async visit(ground) {
      const project = ground.project('npx');
      const npx = (...args) => project.run('npx', ['--yes', 'cofferdam', ...args]);
      assert.equal(await npx('--version'), ground.main.version);
      assert.match(await npx('--help'), /Usage: cofferdam <command>/);
    },
  },
  {
    name: 'npx cofferdam mcp, a client and a sandbox',
    version: 'npx',
    async visit(ground) {
      const project = await ground.installed('npx-mcp', { consumer: 'command', with: [MCP_SDK] });
      await project.visit(process.execPath, ['client.mjs']);
    },
  },
];
