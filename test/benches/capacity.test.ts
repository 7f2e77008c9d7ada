// What the page about the capacity of a cluster computes, by hand.
import { describe, expect, it } from 'vitest';

import { ASSUMED, constantsOf, fillCapacity, needed, twoVectorsOf } from '../../benches/lib/capacity-page.mjs';
import { DerivedDocuments, derivedVector } from '../../benches/lib/derived.mjs';
import { readRecords } from '../../benches/report.mjs';

const OF = {
  encode: 0.002,
  write: 0.001,
  stored: 3000,
  searched: 500,
  perSearch: 0.002,
  inShard: (documents: number) => documents * 1e-8,
  translate: 0.004,
  sparrowBytes: 2e8,
};

describe('what so many documents need', () => {
  it('is bounded by the bytes of a shard, or by the time that one takes', () => {
    // 30 GB of 3,000 bytes are 10 million documents, and 100 ms of 10 ns as well.
    const both = needed(OF, 100_000_000);
    expect([both.shards, both.inShard]).toEqual([10, 10_000_000]);
    expect(both.shardSeconds).toBeCloseTo(0.1, 12);
    const slower = (seconds: number) =>
      needed({ ...OF, inShard: (documents: number) => documents * seconds }, 100_000_000);
    expect(slower(1e-9).shards).toBe(10);
    expect(slower(2e-8).shards).toBe(20);
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

describe('passages with two vectors', () => {
  const search = (kind: string, documents: number, sparrow: number, shards = 1) => ({
    what: `a search by ${kind}, ${String(documents)} passages in ${String(shards)} shards`,
    sparrow,
    detail: { kind, documents, shards },
  });
  const rows = [
    { what: 'encoding a passage by both models', sparrow: 9000, detail: { sparrowResident: 2e8 } },
    { what: 'writing and merging a passage', sparrow: 3000, detail: {} },
    { what: 'a passage on the disk', sparrow: 10_000 },
    { what: 'of which searches read', sparrow: 2500 },
    { what: 'of which is the document as it was sent', sparrow: 7500 },
    { what: 'a search with a text by both vectors, Sparrow alone', sparrow: 5000, detail: {} },
    ...[search('vector', 1000, 2000), search('vector', 250_000, 4000), search('vector', 3_000_000, 12_000, 3)],
    ...[search('tokens', 1000, 1000), search('tokens', 250_000, 7000), search('tokens', 3_000_000, 99_000, 3)],
  ];
  const others = ['cluster-capacity', 'cluster', 'http'].map((suite) => [suite, readRecords().get(suite)] as const);
  const of = twoVectorsOf(new Map<string, unknown>([...others, ['cluster-two-vectors', { rows }]]) as never);
  const ofOne = constantsOf(new Map(others) as never);
  if (of === undefined || ofOne === undefined) throw new Error('there are no constants');

  it('are searched by a vector in each shard, which takes longer with the logarithm of its passages', () => {
    expect(of.byVector(250_000)).toBeCloseTo(0.004, 12);
    expect(of.byVector(250_000 ** 2)).toBeCloseTo(0.008, 12);
    expect(of.inShard(250_000) - of.byTokens(250_000)).toBeCloseTo(0.004, 12);
  });

  it('are searched by tokens in each shard for what the largest measured one takes, and for the slope of large shards above it', () => {
    expect(of.byTokens(250_000)).toBeCloseTo(0.007, 12);
    expect(of.byTokens(1000)).toBeCloseTo(0.007, 12);
    expect(of.byTokens(1_250_000)).toBeCloseTo(0.007 + ofOne.inShard(1_000_000), 12);
  });

  it('need as many cores as their shards have parts of a search, and fit into as many as the time allows', () => {
    const found = needed(of, 100_000_000);
    const inShard = 100_000_000 / found.shards;
    expect(found.searchSeconds).toBeCloseTo(found.shards * (of.byTokens(inShard) + of.byVector(inShard)), 9);
    const quick = needed(of, 100_000_000, { ...ASSUMED, shardSeconds: of.inShard(50_000) });
    expect(quick.shards).toBe(2000);
    expect(quick.shardSeconds).toBeCloseTo(of.inShard(50_000), 9);
  });

  it('are derived with one vector for each number, as long as 1, that none of the others has', () => {
    const tokens = { ptr: [0, 1, 2, 3, 4], idx: [0, 0, 0, 1], val: [1, 1, 1, 1], rows: 4 };
    const documents = new DerivedDocuments(tokens as never, ['a', 'b']);
    const vectors = Array.from({ length: 4 }, (_, at) => [at, at + 1, 2].map((it) => it / Math.hypot(at, at + 1, 2)));
    const made = Array.from({ length: 40 }, (_, at) => derivedVector(vectors, at, documents.passagesOf(at)));
    expect(made.slice(0, 4)).toEqual(vectors);
    expect(new Set(made.map(String)).size).toBe(40);
    for (const vector of made) expect(Math.hypot(...vector)).toBeCloseTo(1, 6);
    expect(derivedVector(vectors, 9, documents.passagesOf(9))).toEqual(made[9]);
    // Only passages with the same heaviest token are mixed.
    const pairs = Array.from({ length: 36 }, (_, at) => documents.passagesOf(at + 4));
    expect(new Set(pairs.filter(([own]) => own !== 3).map(([, other]) => other))).toEqual(new Set([0, 1, 2]));
    expect(pairs.filter(([own]) => own === 3).every(([, other]) => other === 3)).toBe(true);
  });
});

describe('the tables', () => {
  it('stay as they are without a record, and a table that nobody knows is an error', () => {
    const page = '<!-- capacity: sizes -->\nkept\n<!-- end -->';
    expect(fillCapacity(page, new Map())).toBe(page);
    expect(constantsOf(new Map())).toBeUndefined();
  });
});
