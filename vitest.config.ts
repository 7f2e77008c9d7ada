import { configDefaults, defineConfig } from 'vitest/config';

import { mayStartCluster } from './test/support/cluster/start.js';
import { MEASURING, SECOND_TIER, isFirstTier } from './test/tiers.mjs';

/** The short forms that the first tier has of files that measure. */
const SHORT = ['test/soak/soak.test.ts'];
const measuring = Object.keys(MEASURING);
const left = isFirstTier
  ? [...Object.keys(SECOND_TIER), ...measuring].filter((file) => !SHORT.includes(file))
  : measuring;

/**
 * Files that change the settings and the state of one cluster, so they run one after another where there is one. Without a cluster, they
 * are tests like all others.
 */
const CLUSTERED = mayStartCluster()
  ? [
      ...['test/contract/{cluster,engine}*.test.ts', 'test/documentation/examples.test.ts'],
      ...['test/e2e/cluster-*.test.ts', 'test/e2e/console.test.ts'],
    ]
  : [];

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
          exclude: [...configDefaults.exclude, ...left, ...CLUSTERED],
          // A server with its models per file: two at once are as fast as more on a small machine, and lighter.
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'clustered',
          include: CLUSTERED,
          exclude: [...configDefaults.exclude, ...left],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: 'measuring',
          include: isFirstTier ? [] : measuring,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
