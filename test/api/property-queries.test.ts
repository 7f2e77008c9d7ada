// Random queries of every kind against a naive evaluator, on the same documents in one segment, in several with deleted ones
// between them, and in two indices.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Query } from '../support/oracle/clauses.js';
import { type Corpus, type Layout, layouts } from '../support/oracle/corpus.js';
import { evaluate, KINDS, prunes, query } from '../support/oracle/queries.js';
import { Random, SEED, rounds } from '../support/oracle/random.js';
import { type RunningServer, startServer } from '../support/server.js';

const ROUNDS = rounds(40);
const DOCS = 70;

let server: RunningServer;
let places: Layout[];

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  places = await layouts(server, new Random(SEED), DOCS);
});

afterAll(async () => {
  await server.stop();
});

/** What a naive evaluation finds: scores by id. */
function expected(wanted: Query, corpora: readonly Corpus[]): Map<string, number> {
  const hits = corpora.flatMap((corpus) => corpus.docs.map((doc) => [doc.id, evaluate(wanted, doc, corpus)] as const));
  return new Map(hits.filter((hit): hit is [string, number] => hit[1] !== undefined));
}

async function check(wanted: Query, { name, target, corpora }: Layout): Promise<void> {
  const what = `${name}: ${JSON.stringify(wanted)}`;
  const { status, body } = await server.request('POST', `/${target}/_search`, { query: wanted, size: 200 });
  expect(status, `${what}\n${JSON.stringify(body)}`).toBe(200);
  expect(body._shards.failed, `${what}\n${JSON.stringify(body._shards)}`).toBe(0);
  const hits = body.hits.hits as { _id: string; _score: number }[];
  const scores = expected(wanted, corpora);
  expect(hits.map((hit) => hit._id).sort(), what).toEqual([...scores.keys()].sort());
  expect(body.hits.total, what).toEqual({ value: scores.size, relation: 'eq' });
  for (const [n, hit] of hits.entries()) {
    const score = scores.get(hit._id) ?? NaN;
    if (!Number.isNaN(score)) {
      expect(Math.abs(hit._score - score), `${what}\n${hit._id} has ${hit._score} in place of ${score}`).toBeLessThan(
        1e-4 * Math.max(Math.abs(score), 1e-2),
      );
    }
    expect(hit._score, what).toBeLessThanOrEqual(hits[n - 1]?._score ?? Infinity);
  }
}

describe('a query against a naive evaluator', () => {
  it.each(KINDS)('finds and scores the same: %s', async (kind) => {
    const random = new Random(SEED * 1000 + KINDS.indexOf(kind));
    for (let round = 0; round < ROUNDS; round++) {
      const wanted = query(random, kind);
      for (const place of places) {
        if (prunes(wanted) && place.corpora.some((corpus) => !corpus.exact)) continue;
        await check(wanted, place);
      }
    }
  });

  it('puts chosen documents first, in their order: pinned', async () => {
    const random = new Random(SEED * 1000 + 999);
    for (let round = 0; round < ROUNDS; round++) {
      const organic = query(random, random.pick(['range', 'constant_score', 'match_all', 'sparse_vector']), 3);
      const ids = [...new Set(random.several(0, 5, () => String(random.int(0, DOCS + 9))))];
      for (const { name, target, corpora } of places) {
        if (prunes(organic) && corpora.some((corpus) => !corpus.exact)) continue;
        const there = ids.filter((id) => corpora.some(({ docs }) => docs.some((doc) => doc.id === id)));
        const rest = [...expected(organic, corpora).keys()].filter((id) => !there.includes(id));
        const asked = { query: { pinned: { ids, organic } }, size: 200 };
        const { body } = await server.request('POST', `/${target}/_search`, asked);
        const what = `${name}: ${JSON.stringify(asked)}\n${JSON.stringify(body.error)}`;
        const found = body.hits?.hits.map((hit: { _id: string }) => hit._id);
        expect(found?.slice(0, there.length), what).toEqual(there);
        expect(found?.slice(there.length).sort(), what).toEqual(rest.sort());
      }
    }
  });
});
