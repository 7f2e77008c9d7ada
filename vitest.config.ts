import { configDefaults, defineConfig } from 'vitest/config';

import { MEASURING, SECOND_TIER, isFirstTier } from './test/tiers.mjs';

/** The short forms that the first tier has of files that measure. */
const SHORT = ['test/soak/soak.test.ts'];
const measuring = Object.keys(MEASURING);
const left = isFirstTier
  ? [...Object.keys(SECOND_TIER), ...measuring].filter((file) => !SHORT.includes(file))
  : measuring;

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // A machine that others use too may take seconds for what it does in milliseconds otherwise.
    expect: { poll: { timeout: 20_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['test/**/*.test.ts', 'packages/*/src/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...left],
          // A server with its models per file: two at once are as fast as more on a small machine, and lighter.
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'measuring',
          include: isFirstTier ? [] : measuring,
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
