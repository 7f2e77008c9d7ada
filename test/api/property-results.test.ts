// Random orders of hits, groups, second passes and fused lists against their definitions, on the same documents in one
// segment, in several with deleted ones between them, and in two indices.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Layout, layouts, TOKENS } from '../support/oracle/corpus.js';
import type { Query } from '../support/oracle/clauses.js';
import { query } from '../support/oracle/queries.js';
import { Random, SEED, rounds } from '../support/oracle/random.js';
import {
  byScore,
  collapsed,
  matches,
  type Ranked,
  rescored,
  retrieved,
  sorted,
  type SortKey,
} from '../support/oracle/ranking.js';
import { type RunningServer, startServer } from '../support/server.js';

const ROUNDS = rounds(40);

let server: RunningServer;
let places: Layout[];

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  places = await layouts(server, new Random(SEED), 60);
});

afterAll(async () => {
  await server.stop();
});

async function search(place: Layout, body: object): Promise<any> {
  const { status, body: found } = await server.request('POST', `/${place.target}/_search`, body);
  expect(status, `${JSON.stringify(body)}\n${JSON.stringify(found)}`).toBe(200);
  expect(found._shards.failed, JSON.stringify(found._shards)).toBe(0);
  return found;
}

const idsOf = (found: any): string[] => found.hits.hits.map((hit: { _id: string }) => hit._id);
const ids = (hits: readonly Ranked[]): string[] => hits.map(({ doc }) => doc.id);

/** A query whose scores are exact in single precision. */
function scoring(random: Random): Query {
  const filter = query(random, random.pick(['match_all', 'range', 'term', 'exists']), 3);
  switch (random.int(0, 2)) {
    case 0:
      return {
        function_score: { query: filter, field_value_factor: { field: 'u', factor: 0.5 }, boost_mode: 'replace' },
      };
    case 1:
      return { constant_score: { filter, boost: random.int(1, 8) / 2 } };
    default: {
      const query_vector = Object.fromEntries(random.some(TOKENS, 0.6).map((token) => [token, random.int(1, 6)]));
      return { sparse_vector: { field: 'sv', query_vector: { ...query_vector, w0: 2 } } };
    }
  }
}

function sortKey(random: Random): SortKey {
  const field = random.pick(['n', 'n', 'd', 'when', 'kw', 'least', 'u']);
  const modes = field === 'kw' ? ['min', 'max'] : ['min', 'max', 'sum', 'avg', 'median'];
  const value = field === 'kw' ? 'ab' : field === 'when' ? Date.UTC(2024, 0, 7) : 3;
  return {
    field,
    order: random.pick(['asc', 'desc']),
    missing: random.pick(['_first', '_last', value]),
    ...(random.chance(0.5) ? { mode: random.pick(modes) } : {}),
  };
}

const written = ({ field, ...options }: SortKey): object => ({ [field]: options });

async function each(test: (random: Random, place: Layout) => Promise<void>): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    for (const place of places) await test(new Random(SEED * 1000 + round), place);
  }
}

describe('hits against their definition', () => {
  it('come in the order of sort, from page to page with from, size and search_after', async () => {
    await each(async (random, place) => {
      const wanted = scoring(random);
      const keys = random.several(1, 3, () => sortKey(random));
      const all = ids(sorted(matches(wanted, place), keys));
      const size = random.int(1, 12);
      const from = random.int(0, 20);
      const what = JSON.stringify({ place: place.name, wanted, keys });
      const page = await search(place, { query: wanted, sort: keys.map(written), from, size });
      expect(idsOf(page), what).toEqual(all.slice(from, from + size));
      expect(page.hits.total.value).toBe(all.length);
      // Numbers that stand for no value are too large for JavaScript: where any may be missing they are passed over.
      const exact = keys.every(({ field, missing }) => field === 'u' || field === 'kw' || typeof missing === 'number');
      if (!exact) return;
      const unique = [...keys, { field: 'u', order: 'asc' } as const];
      const whole = ids(sorted(matches(wanted, place), unique));
      const found: string[] = [];
      for (let search_after: unknown; ;) {
        const after = search_after === undefined ? {} : { search_after };
        const next = await search(place, { query: wanted, sort: unique.map(written), size, ...after });
        if (next.hits.hits.length === 0) break;
        found.push(...idsOf(next));
        search_after = next.hits.hits.at(-1).sort;
      }
      expect(found, what).toEqual(whole);
    });
  });

  it('are those of min_score and post_filter, which aggregations do not see', async () => {
    await each(async (random, place) => {
      const wanted = scoring(random);
      const post_filter = query(random, random.pick(['range', 'term', 'exists']), 3);
      const min_score = random.int(0, 20);
      const above = byScore(matches(wanted, place)).filter(({ score }) => score >= min_score);
      const passing = new Set(ids(matches(post_filter, place)));
      const aggs = { count: { value_count: { field: 'u' } } };
      const found = await search(place, { query: wanted, min_score, post_filter, aggs, size: 100 });
      expect(idsOf(found)).toEqual(ids(above).filter((id) => passing.has(id)));
      expect(found.aggregations.count.value).toBe(above.length);
    });
  });

  it('are the first of their groups with collapse', async () => {
    await each(async (random, place) => {
      const wanted = scoring(random);
      const field = random.pick(['least', 'd', 'pop']);
      const keys = random.chance(0.5) ? random.several(1, 2, () => sortKey(random)) : [];
      const hits = matches(wanted, place);
      const all = collapsed(keys.length > 0 ? sorted(hits, keys) : byScore(hits), field);
      const sort = keys.length > 0 ? { sort: keys.map(written) } : {};
      const [from, size] = [random.int(0, 4), random.int(1, 30)];
      const found = await search(place, { query: wanted, collapse: { field }, ...sort, from, size });
      const what = JSON.stringify({ place: place.name, wanted, keys, field });
      expect(idsOf(found), what).toEqual(ids(all).slice(from, from + size));
      expect(found.hits.total.value).toBe(hits.length);
    });
  });

  it('are scored again by rescore', async () => {
    await each(async (random, place) => {
      const wanted = scoring(random);
      const rescore = {
        window_size: random.int(1, 40),
        query: {
          rescore_query: scoring(random),
          ...random.maybe(0.6, () => ({ query_weight: random.int(0, 4) / 2 })),
          ...random.maybe(0.6, () => ({ rescore_query_weight: random.int(1, 4) / 2 })),
          ...random.maybe(0.7, () => ({ score_mode: random.pick(['total', 'multiply', 'avg', 'max', 'min']) })),
        },
      };
      const all = rescored(wanted, rescore, place);
      const found = await search(place, { query: wanted, rescore, size: 100 });
      const what = JSON.stringify({ place: place.name, wanted, rescore });
      expect(found.hits.hits.map((hit: any) => hit._score)).toEqual(all.map(({ score }) => score));
      const scores = new Map(all.map(({ doc, score }) => [doc.id, score]));
      for (const hit of found.hits.hits) expect(hit._score, `${what} ${hit._id}`).toBe(scores.get(hit._id));
    });
  });
});

/** A retriever of random lists. */
function retriever(random: Random, depth: number): Query {
  const filter = random.maybe(0.3, () => ({ filter: query(random, random.pick(['range', 'exists', 'term']), 3) }));
  const least = random.maybe(0.2, () => ({ min_score: random.int(0, 3) }));
  const kind = depth > 1 ? random.pick(['standard', 'knn']) : random.pick(['standard', 'knn', 'rrf', 'linear']);
  if (kind === 'standard') return { standard: { query: scoring(random), ...filter, ...least } };
  if (kind === 'knn') {
    const query_vector = [random.int(-5000, 5000) / 1000, random.int(-5000, 5000) / 1000];
    return { knn: { field: 'v', query_vector, k: random.int(1, 30), num_candidates: 100, ...filter } };
  }
  return fusion(random, kind, depth, 100);
}

function fusion(random: Random, kind: string, depth: number, window: number): Query {
  const filter = random.maybe(0.3, () => ({ filter: query(random, random.pick(['range', 'exists', 'term']), 3) }));
  const retrievers = random.several(2, 3, () => {
    const inner = retriever(random, depth + 1);
    if (kind === 'rrf') return random.chance(0.5) ? inner : { retriever: inner, weight: random.int(1, 6) / 2 };
    const normalizer = random.maybe(0.7, () => ({ normalizer: random.pick(['minmax', 'l2_norm', 'none']) }));
    return { retriever: inner, weight: random.int(1, 6) / 2, ...normalizer };
  });
  const constant = kind === 'rrf' ? random.maybe(0.6, () => ({ rank_constant: random.int(1, 60) })) : {};
  return { [kind]: { retrievers, rank_window_size: window, ...constant, ...filter } };
}

describe('retrievers against their definition', () => {
  it.each(['rrf', 'linear'])('join ranked lists: %s of standard, knn, rrf and linear', async (kind) => {
    await each(async (random, place) => {
      const wanted = fusion(random, kind, 0, random.chance(0.3) ? random.int(5, 30) : 100);
      const size = Math.min((Object.values(wanted)[0] as any).rank_window_size, random.int(1, 100));
      const all = retrieved(wanted, place, size);
      const found = await search(place, { retriever: wanted, size });
      const what = JSON.stringify({ place: place.name, wanted });
      const hits = found.hits.hits as { _id: string; _score: number }[];
      expect(hits.length, what).toBe(Math.min(size, all.length));
      // Sums that differ by rounding may change places, and of equal ones at the end any may be shown.
      for (const [n, { _id, _score }] of hits.entries()) {
        const at = `${what} ${_id}`;
        expect(Math.abs(_score - (all[n]?.score ?? NaN)), at).toBeLessThan(1e-4 * Math.max(1, _score));
      }
    });
  });
});
