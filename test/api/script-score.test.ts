// `script_score` as vector stores send it for exact search, against the real engine and a naive evaluation.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
const call = (method: string, path: string, body?: unknown) => server.request(method, path, body);
const VECTORS: Record<string, number[]> = { a: [1, 0, 0], b: [0.6, 0.8, 0], c: [-1, 2, 0.5], d: [0, 0, -3] };
const QUERY = [0.5, 1, -0.25];
const dot = (a: number[], b: number[]) => a.reduce((sum, x, at) => sum + x * b[at]!, 0);
const length = (a: number[]) => Math.sqrt(dot(a, a));
const minus = (a: number[], b: number[]) => a.map((x, at) => x - b[at]!);
const cosine = (a: number[], b: number[]) => dot(a, b) / (length(a) * length(b));
const search = async (body: object): Promise<any> => {
  const answer = await call('POST', '/vectors/_search', { size: 10, ...body });
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const script = (source: string, query: object = { match_all: {} }, params: object = { query_vector: QUERY }) => ({
  query: { script_score: { query, script: { source, params } } },
});
const scores = (answer: any): Record<string, number> =>
  Object.fromEntries(answer.hits.hits.map((hit: any) => [hit._id, hit._score]));

beforeAll(async () => {
  server = await startServer();
  const vector = { type: 'dense_vector', dims: 3 };
  await call('PUT', '/vectors', {
    mappings: {
      properties: {
        vector: { ...vector, index: false },
        searched: { ...vector, similarity: 'l2_norm' },
        some: { ...vector, index: false },
        word: { type: 'text' },
        tag: { type: 'keyword' },
      },
    },
  });
  const lines = Object.entries(VECTORS).flatMap(([_id, value]) => [
    { index: { _id } },
    {
      vector: value,
      searched: value,
      word: `word ${_id}`,
      tag: 'ab'.includes(_id) ? 'x' : 'y',
      ...(_id === 'a' ? { some: value } : {}),
    },
  ]);
  const written = await call(
    'POST',
    '/vectors/_bulk?refresh=true',
    `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`,
  );
  expect(written.body.errors, written.text).toBe(false);
});
afterAll(async () => {
  await server.stop();
});

describe('script_score', () => {
  it.each([
    ['cosineSimilarity(params.query_vector, FIELD) + 1.0', (v: number[]) => cosine(QUERY, v) + 1],
    ['dotProduct(params.query_vector, FIELD) + 1000', (v: number[]) => dot(QUERY, v) + 1000],
    ['1 / (1 + l2norm(params.query_vector, FIELD))', (v: number[]) => 1 / (1 + length(minus(QUERY, v)))],
    [
      '1 / (1 + l1norm(params.query_vector, FIELD))',
      (v: number[]) => 1 / (1 + minus(QUERY, v).reduce((sum, x) => sum + Math.abs(x), 0)),
    ],
    [
      '\n double value = dotProduct(params.query_vector, FIELD);\n return sigmoid(1, Math.E, -value);\n',
      (v: number[]) => 1 / (1 + Math.exp(-dot(QUERY, v))),
    ],
    [
      'doc[FIELD].size() == 0 ? 0 : cosineSimilarity(params.query_vector, FIELD) + 1',
      (v: number[]) => cosine(QUERY, v) + 1,
    ],
  ])('scores by %s', async (source, naive) => {
    for (const field of ['vector', 'searched']) {
      const found = await search(script(source.replaceAll('FIELD', `'${field}'`)));
      const expected = Object.entries(VECTORS).map(([id, vector]) => [id, naive(vector)] as const);
      expect(found.hits.hits.map((hit: any) => hit._id)).toEqual(
        expected.toSorted((a, b) => b[1] - a[1]).map(([id]) => id),
      );
      for (const [id, score] of expected) expect(scores(found)[id]).toBeCloseTo(score, 3);
    }
  });

  it('goes by the query inside, its scores, filters, a least score and a boost', async () => {
    const plain = "cosineSimilarity(params.query_vector, 'vector') + 1.0";
    const filtered = await search(script(plain, { bool: { filter: [{ term: { tag: 'x' } }] } }));
    expect(Object.keys(scores(filtered)).sort()).toEqual(['a', 'b']);
    expect(filtered.hits.total.value).toBe(2);
    const words = { match: { word: 'b' } };
    const own = scores(await search({ query: words }))['b']!;
    const sum = scores(await search(script(`2 * _score + ${plain}`, words)));
    expect(sum['b']).toBeCloseTo(2 * own + cosine(QUERY, VECTORS['b']!) + 1, 3);
    const least = await search({
      query: {
        script_score: {
          query: { match_all: {} },
          script: { source: plain, params: { query_vector: QUERY } },
          min_score: 1.5,
        },
      },
    });
    expect(Object.values(scores(least)).every((score) => score >= 1.5)).toBe(true);
    expect(least.hits.total.value).toBe(Object.values(VECTORS).filter((v) => cosine(QUERY, v) + 1 >= 1.5).length);
    const boosted = await search({
      query: { script_score: { query: words, script: { source: '3', lang: 'painless' }, boost: 2 } },
    });
    expect(scores(boosted)['b']).toBe(6);
    // Beside others, and through merges and a restart of its segments.
    await call('POST', '/vectors/_forcemerge?max_num_segments=1');
    const beside = await search({ query: { bool: { should: [script(plain).query, { term: { tag: 'x' } }] } } });
    expect(Object.keys(scores(beside))).toHaveLength(4);
    const explained = await search({ ...script(plain, words), explain: true });
    expect(explained.hits.hits[0]._explanation.value).toBeCloseTo(explained.hits.hits[0]._score, 4);
  });

  it('asks documents whether they have a vector', async () => {
    const found = await search(script("doc['some'].size() == 0 ? 0 : dotProduct(params.query_vector, 'some') + 1"));
    expect(scores(found)).toEqual({ a: 1.5, b: 0, c: 0, d: 0 });
    // Vectors that kNN does not search exist, too.
    expect(scores(await search({ query: { exists: { field: 'some' } } }))).toEqual({ a: 1 });
  });

  it.each([
    [
      'another number of dimensions',
      "cosineSimilarity(params.query_vector, 'vector')",
      { query_vector: [1, 2] },
      'The query vector has a different number of dimensions [2] than the document vectors [3].',
    ],
    [
      'a document without a vector',
      "dotProduct(params.query_vector, 'some') + 9",
      undefined,
      "A document doesn't have a value for a vector field!",
    ],
    ['a negative score', "dotProduct(params.query_vector, 'vector') - 100", undefined, 'Must be a non-negative score!'],
    [
      'a field that is not there',
      "dotProduct(params.query_vector, 'gone')",
      undefined,
      'No field found for [gone] in mapping',
    ],
    [
      'a field of words',
      "dotProduct(params.query_vector, 'tag')",
      undefined,
      'Field [tag] of type [keyword] has no vectors',
    ],
    [
      'a parameter that is not given',
      "dotProduct(params.other, 'vector')",
      undefined,
      'the query vector must be a list of numbers',
    ],
    [
      'any other script',
      "doc['price'].value * Math.random()",
      undefined,
      'static method [java.lang.Math, random/0] not found',
    ],
  ])('refuses %s', async (_what, source, params, expected) => {
    const answer = await call('POST', '/vectors/_search', script(source, undefined, params));
    expect(answer.status, answer.text).toBe(400);
    expect(answer.text).toContain(expected);
  });

  it('has room for the longest scripts in the deepest queries', async () => {
    // The scripts inside are worked out while those around them are: one that is too long ended the process.
    const nested = (numbers: number, levels: number): object => {
      let query: object = { match_all: {} };
      for (let level = 0; level < levels; level += 1) {
        query = { script_score: { query, script: { source: `_score${'+1'.repeat(numbers - 1)}` } } };
      }
      return query;
    };
    const longest = await call('POST', '/vectors/_search', { query: nested(128, 29), sort: '_score' });
    expect([200, 400], longest.text).toContain(longest.status);
    const tooLong = await call('POST', '/vectors/_search', { query: nested(2040, 7) });
    expect([200, 400], tooLong.text).toContain(tooLong.status);
    const deep = `${'('.repeat(20_000)}1${')'.repeat(20_000)}`;
    expect((await call('POST', '/vectors/_search', script(deep))).status).toBe(400);
    const explained = await call('POST', '/vectors/_search', { query: nested(128, 29), explain: true, profile: true });
    expect([200, 400], explained.text).toContain(explained.status);
  });

  it('refuses what is no query of this kind', async () => {
    for (const [body, expected] of [
      [{ script: { source: '1' } }, 'Required [query]'],
      [{ query: { match_all: {} } }, 'Required [script]'],
      [{ query: { match_all: {} }, script: { id: 'stored' } }, 'unable to find script [stored]'],
      [{ query: { match_all: {} }, script: { source: '1', lang: 'mustache' } }, 'script_lang not supported [mustache]'],
      [{ query: { match_all: {} }, script: '1', nope: 1 }, '[script_score] unknown field [nope]'],
    ] as const) {
      const answer = await call('POST', '/vectors/_search', { query: { script_score: body } });
      expect(answer.status, answer.text).toBe(400);
      expect(answer.text).toContain(expected);
    }
  });
});
