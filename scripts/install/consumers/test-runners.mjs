// Test runners: each gives a test file modules of its own, so that the addon is loaded more than once in a process.

import { versionOf } from '../tools.mjs';

/** Of one test: their own is a measure of quick units. */
const HANG_GUARD = '--testTimeout=60000';

export const testRunners = [
  {
    name: 'jest, two test files in one process',
    version: `jest ${versionOf('jest')}`,
    async visit(ground) {
      const project = await ground.installed('jest', { consumer: 'jest' });
      const jest = ground.tools.path('jest/bin/jest.js');
      await project.visit(process.execPath, [jest, '--rootDir', '.', '--runInBand', HANG_GUARD]);
    },
  },
  ...['forks', 'threads'].map((pool) => ({
    name: `vitest, pool "${pool}"`,
    version: `vitest ${versionOf('vitest')}`,
    async visit(ground) {
      const project = await ground.installed(`vitest-${pool}`, { consumer: 'vitest' });
      const vitest = ground.tools.path('vitest/vitest.mjs');
      await project.visit(ground.tools.node('24'), [vitest, 'run', '--globals', '--pool', pool, HANG_GUARD]);
    },
  })),
];
