// What others' tools say of the tarball: that each way of importing finds types of its own kind, and that package.json is right.

import { versionOf } from '../tools.mjs';

export const declarations = [
  {
    name: 'types, every entry and every resolution',
    version: `@arethetypeswrong/cli ${versionOf('@arethetypeswrong/cli')}`,
    async visit(ground) {
      const program = ground.tools.path('@arethetypeswrong/cli/dist/index.js');
      await ground.project('attw').run(process.execPath, [program, '--no-color', ground.main.file]);
    },
  },
  {
    name: 'package.json and files',
    version: `publint ${versionOf('publint')}`,
    async visit(ground) {
      const program = ground.tools.path('publint/src/cli.js');
      await ground.project('publint').run(process.execPath, [program, 'run', ground.main.file, '--strict']);
    },
  },
];
