// What the page about the capacity of a cluster computes, by hand.
import { describe, expect, it } from 'vitest';

import { ASSUMED, constantsOf, fillCapacity, needed } from '../../benches/lib/capacity-page.mjs';

const OF = {
  encode: 0.002,
  write: 0.001,
  stored: 3000,
  searched: 500,
  perSearch: 0.002,
  perDocument: 1e-8,
  translate: 0.004,
  sparrowBytes: 2e8,
};

describe('what so many documents need', () => {
  it('is bounded by the bytes of a shard, or by the time that one takes', () => {
    // 30 GB of 3,000 bytes are 10 million documents, and 100 ms of 10 ns as well.
    const both = needed(OF, 100_000_000);
    expect([both.shards, both.inShard]).toEqual([10, 10_000_000]);
    expect(both.shardSeconds).toBeCloseTo(0.1, 12);
    expect(needed({ ...OF, perDocument: 1e-9 }, 100_000_000).shards).toBe(10);
    expect(needed({ ...OF, perDocument: 2e-8 }, 100_000_000).shards).toBe(20);
    expect(needed({ ...OF, stored: 30_000 }, 100_000_001).shards).toBe(101);
  });

  it('counts copies, shards, searches and days', () => {
    const found = needed(OF, 100_000_000, { ...ASSUMED, replicas: 2, searchesPerSecond: 50, loadDays: 5 });
    expect(found.searchSeconds).toBeCloseTo(0.002 + 1, 9);
    expect(found.searchCores).toBeCloseTo((50 * 1.002) / 0.5, 6);
    expect(found.sparrowSearchCores).toBeCloseTo((50 * 0.004) / 0.5, 9);
    expect(found.diskBytes).toBeCloseTo((100e6 * 3000 * 3) / 0.8, 0);
    expect(found.cachedBytes).toBeCloseTo(100e6 * 500 * 3, 0);
    expect(found.encoderCores).toBeCloseTo((100e6 * 0.002) / (5 * 86_400) / 0.5, 9);
    expect(found.writeCores).toBeCloseTo((100e6 * 0.001 * 3) / (5 * 86_400) / 0.5, 9);
  });
});

describe('the tables', () => {
  it('stay as they are without a record, and a table that nobody knows is an error', () => {
    const page = '<!-- capacity: sizes -->\nkept\n<!-- end -->';
    expect(fillCapacity(page, new Map())).toBe(page);
    expect(constantsOf(new Map())).toBeUndefined();
  });
});
