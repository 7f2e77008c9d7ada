// Random aggregations of every kind against a naive evaluator, on the same documents in one segment, in several with deleted
// ones between them, and in two indices.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ANY, type Aggregation, aggregateAll, type Found } from '../support/oracle/aggregate.js';
import { aggregations, KINDS } from '../support/oracle/aggregations.js';
import { type Layout, layouts } from '../support/oracle/corpus.js';
import { evaluate, query } from '../support/oracle/queries.js';
import { Random, SEED, rounds } from '../support/oracle/random.js';
import { type RunningServer, startServer } from '../support/server.js';

const ROUNDS = rounds(30);
const DOCS = 90;

let server: RunningServer;
let places: Layout[];

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  places = await layouts(server, new Random(SEED), DOCS);
});

afterAll(async () => {
  await server.stop();
});

/** Where two results differ; undefined if they agree but for rounding. */
function difference(found: any, wanted: any, at = ''): string | undefined {
  if (wanted === ANY) return undefined;
  if (typeof wanted === 'number' && typeof found === 'number') {
    const near = Math.abs(found - wanted) <= 1e-6 * Math.max(1, Math.abs(wanted));
    return near ? undefined : `${at}: ${String(found)} in place of ${String(wanted)}`;
  }
  if (typeof wanted === 'object' && wanted !== null && typeof found === 'object' && found !== null) {
    const keys = [...new Set([...Object.keys(found), ...Object.keys(wanted)])];
    for (const key of keys) {
      const inner = difference(found[key], wanted[key], `${at}.${key}`);
      if (inner !== undefined) return inner;
    }
    return Array.isArray(found) === Array.isArray(wanted) ? undefined : `${at}: another shape`;
  }
  return Object.is(found, wanted) ? undefined : `${at}: ${JSON.stringify(found)} in place of ${JSON.stringify(wanted)}`;
}

/** The results of a search; of a `composite` all pages. */
async function results(target: string, wanted: object, aggs: Record<string, Aggregation>): Promise<any> {
  const ask = async (asked: object): Promise<any> => {
    const { status, body } = await server.request('POST', `/${target}/_search`, {
      query: wanted,
      aggs: asked,
      size: 0,
    });
    expect(status, `${JSON.stringify(asked)}\n${JSON.stringify(body)}`).toBe(200);
    expect(body._shards.failed, `${JSON.stringify(asked)}\n${JSON.stringify(body._shards)}`).toBe(0);
    return body.aggregations;
  };
  const first = await ask(aggs);
  const paged = aggs['a']?.['composite'];
  if (paged === undefined) return first;
  const buckets = [...first.a.buckets];
  for (let after = first.a.after_key; after !== undefined;) {
    const { a } = await ask({ a: { ...aggs['a'], composite: { ...paged, after } } });
    expect(a.buckets.length).toBeLessThanOrEqual(paged.size);
    buckets.push(...a.buckets);
    after = a.after_key;
  }
  return { a: { buckets } };
}

describe('an aggregation against a naive evaluator', () => {
  it.each([
    'terms',
    'multi_terms',
    'rare_terms',
    'range',
    'date_range',
    'histogram',
    'date_histogram',
    'filter',
    'filters',
    'auto_date_histogram',
    'variable_width_histogram',
    'geohash_grid',
    'geotile_grid',
    'significant_terms',
    'significant_text',
    'adjacency_matrix',
    'missing',
    'global',
    'composite',
    'min',
    'max',
    'avg',
    'sum',
    'stats',
    'extended_stats',
    'value_count',
    'cardinality',
    'percentiles',
    'percentile_ranks',
    'median_absolute_deviation',
    'weighted_avg',
    'boxplot',
    'string_stats',
    'top_metrics',
    'top_hits',
    'cumulative_sum',
    'derivative',
    'serial_diff',
    'normalize',
    'bucket_script',
    'bucket_selector',
    'bucket_sort',
    'avg_bucket',
    'sum_bucket',
    'min_bucket',
    'max_bucket',
    'stats_bucket',
    'extended_stats_bucket',
    'percentiles_bucket',
  ])('comes to the same: %s', async (kind) => {
    const random = new Random(SEED * 1000 + KINDS.indexOf(kind));
    for (let round = 0; round < ROUNDS; round++) {
      const aggs = aggregations(random, kind);
      const wanted = query(random, random.pick(['match_all', 'range', 'match', 'term', 'exists']));
      for (const { name, target, corpora } of places) {
        const all: Found[] = corpora.flatMap((corpus) => corpus.docs.map((doc) => ({ doc, corpus })));
        const matching = all.filter(({ doc, corpus }) => evaluate(wanted, doc, corpus) !== undefined);
        const found = await results(target, wanted, aggs);
        const naive = aggregateAll(aggs, matching, all);
        const what = `${name}: ${JSON.stringify({ query: wanted, aggs })}\n${JSON.stringify(found)}`;
        expect(difference(found, naive), what).toBeUndefined();
      }
    }
  });

  it('is made for every kind that there is an evaluator for', () => {
    expect(KINDS).toHaveLength(49);
  });
});
