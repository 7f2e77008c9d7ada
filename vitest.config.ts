import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'packages/*/src/**/*.test.ts'],
    // A server with its models per file: two at once are as fast as more on a small machine, and lighter.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // A machine that others use too may take seconds for what it does in milliseconds otherwise.
    expect: { poll: { timeout: 20_000 } },
  },
});
