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
  // A hang guard, not a measure: engines on loaded machines are slow.
  testTimeout: 60_000,
  // The engine is the bottleneck, and a shared one.
  maxWorkers: 2,
};
