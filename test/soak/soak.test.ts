// The short form of `npm run test:soak`, and its verdict over figures that grow.
import { describe, expect, it } from 'vitest';

import { byTier, isFirstTier } from '../tiers.mjs';
import { soak } from './run.mjs';
import { BOUNDS, SHORT_BOUNDS, checks, growth } from './verdict.mjs';

const FLAT = { anonymousBytes: 2 ** 28, descriptors: 100, threads: 40, diskPerDocument: 900, p99: 40 };
const series = (change: (at: number) => object = () => ({})): object[] =>
  Array.from({ length: 40 }, (_, at) => ({ ...FLAT, ...change(at) }));
const grown = (windows: object[]): string[] =>
  growth(windows as any, BOUNDS)
    .filter(({ passed }) => !passed)
    .map(({ figure }) => figure);

describe('the verdict of a soak', () => {
  it('takes what stays the same, with a window that is unlike the others', () => {
    expect(grown(series())).toEqual([]);
    expect(grown(series((at) => (at === 37 ? { p99: 900, anonymousBytes: 2 ** 31 } : {})))).toEqual([]);
  });

  it('finds each figure that grows all the time', () => {
    for (const figure of Object.keys(FLAT) as (keyof typeof FLAT)[]) {
      expect(grown(series((at) => ({ [figure]: FLAT[figure] * (1 + at / 30) })))).toEqual([figure]);
    }
  });

  it('fails for a figure that is not there, for failures and for differences', () => {
    expect(grown(series(() => ({ threads: Number.NaN })))).toEqual(['threads']);
    const report = { windows: series(), failures: ['a'], unexpected: ['b'], differences: ['c'], ended: ['d'] };
    const failed = checks(report as any).filter(({ passed }) => !passed);
    expect(failed.map(({ detail }) => detail)).toEqual([['a'], ['b'], ['c'], ['d']]);
  });
});

describe.runIf(process.platform === 'linux')('a server under all kinds of load', () => {
  it('fails no request, loses no document, and does not grow', async () => {
    const report = await soak({ seconds: byTier(5, 40), seed: Number(process.env['SOAK_SEED'] ?? 1) });
    expect(report.requests).toBeGreaterThan(byTier(20, 500));
    if (isFirstTier) {
      // What grows is not seen in a few seconds.
      const { failures, unexpected, differences, ended } = report as any;
      expect([failures, unexpected, differences, ended]).toEqual([[], [], [], []]);
      return;
    }
    expect(report.windows.length).toBeGreaterThan(10);
    expect(checks(report as any, SHORT_BOUNDS).filter(({ passed }) => !passed)).toEqual([]);
  }, 180_000);
});
