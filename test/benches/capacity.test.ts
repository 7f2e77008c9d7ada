// What the page about the capacity of a cluster computes, by hand.
import { describe, expect, it } from 'vitest';

import { ASSUMED, constantsOf, fillCapacity, needed } from '../../benches/lib/capacity-page.mjs';
import { straightLine } from '../../benches/lib/statistics.mjs';

const OF = {
  encode: 0.002,
  write: 0.001,
  stored: 3000,
  searched: 500,
  perShard: 0.002,
  perDocument: 1e-8,
  translate: 0.004,
  sparrowBytes: 2e8,
};

describe('a straight line', () => {
  it('goes through points that lie on one, and between others', () => {
    const line = straightLine([
      [1, 5],
      [2, 7],
      [4, 11],
    ]);
    expect([line.slope, line.at(0), line.at(10)]).toEqual([2, 3, 23]);
    expect(
      straightLine([
        [0, 0],
        [0, 2],
        [1, 3],
      ]).at(0),
    ).toBeCloseTo(1, 12);
  });
});

describe('what so many documents need', () => {
  it('is bounded by the bytes of a shard', () => {
    // 30 GB of 3,000 bytes are 10 million documents; 98 ms of 10 ns are 9.8 million.
    const slower = needed(OF, 98_000_000);
    expect([slower.shards, slower.inShard]).toEqual([10, 9_800_000]);
    expect(slower.shardSeconds).toBeCloseTo(0.1, 12);
    const larger = needed({ ...OF, perDocument: 1e-9 }, 98_000_000);
    expect(larger.shards).toBe(10);
    expect(needed({ ...OF, stored: 30_000 }, 98_000_000).shards).toBe(98);
  });

  it('counts copies, shards, searches and days', () => {
    const found = needed(OF, 98_000_000, { ...ASSUMED, replicas: 2, searchesPerSecond: 50, loadDays: 5 });
    expect(found.searchSeconds).toBeCloseTo(10 * 0.002 + 0.98, 9);
    expect(found.searchCores).toBeCloseTo((50 * 1) / 0.5, 6);
    expect(found.sparrowSearchCores).toBeCloseTo((50 * 0.004) / 0.5, 9);
    expect(found.diskBytes).toBeCloseTo((98e6 * 3000 * 3) / 0.8, 0);
    expect(found.cachedBytes).toBeCloseTo(98e6 * 500 * 3, 0);
    expect(found.encoderCores).toBeCloseTo((98e6 * 0.002) / (5 * 86_400) / 0.5, 9);
    expect(found.writeCores).toBeCloseTo((98e6 * 0.001 * 3) / (5 * 86_400) / 0.5, 9);
  });
});

describe('the tables', () => {
  it('stay as they are without a record, and a table that nobody knows is an error', () => {
    const page = '<!-- capacity: sizes -->\nkept\n<!-- end -->';
    expect(fillCapacity(page, new Map())).toBe(page);
    expect(constantsOf(new Map())).toBeUndefined();
  });
});
