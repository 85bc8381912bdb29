/** @type {import('jest').Config} */
module.exports = {
  testMatch: ['<rootDir>/__test__/**/*.test.ts'],
  modulePathIgnorePatterns: ['target', 'dist', 'npm', '.cache', '__test__/install'].map((name) => `<rootDir>/${name}/`),
  moduleNameMapper: { '^cofferdam$': '<rootDir>/dist/index.js', '^cofferdam/(.*)$': '<rootDir>/dist/$1/index.js' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript', explicitResourceManagement: true } } },
    ],
  },
  testSequencer: '<rootDir>/scripts/long-first.cjs',
  // A hang guard, not a measure: engines on loaded machines are slow.
  testTimeout: 60_000,
  // On two processors, too: two leave 30 to 50 % of their time idle, waiting for an engine.
  maxWorkers: 3,
};
