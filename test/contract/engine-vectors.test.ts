// Dense vectors: one suite for every engine behind the routes, as in engines.test.ts.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES, IS_ELASTICSEARCH } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

type Hit = { _id: string; _score: number; _source: any; matched_queries?: string[] };

const bigEndian = (floats: readonly number[]): string => {
  const bytes = Buffer.alloc(4 * floats.length);
  floats.forEach((float, at) => bytes.writeFloatBE(float, 4 * at));
  return bytes.toString('base64');
};
const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, it, at) => sum + it * (b[at] ?? 0), 0);
const length = (a: readonly number[]) => Math.sqrt(dot(a, a));
const minus = (a: readonly number[], b: readonly number[]) => a.map((it, at) => it - (b[at] ?? 0));
const unit = (a: readonly number[]) => a.map((it) => it / length(a));
const cosine = (a: readonly number[], b: readonly number[]) => dot(a, b) / length(a) / length(b);
const ones = (byte: number) => (byte & 255).toString(2).replaceAll('0', '').length;
const product = (raw: number) => (raw < 0 ? 1 / (1 - raw) : raw + 1);

/** Vectors of three whole numbers, different for each document. */
const VECTORS = Object.fromEntries(
  Array.from({ length: 24 }, (_, at) => [
    `d${String(at)}`,
    [((at * 7) % 23) - 11, ((at * 5) % 19) - 9, ((at * 3) % 17) - 8.5].map((it) => Math.round(it) || 1),
  ]),
);
const ASKED = [3, -2, 5];

const field = (more: object) => ({ type: 'dense_vector', index: true, ...more });
const graph = { type: 'hnsw', m: 16, ef_construction: 100 };
const PROPERTIES = {
  kind: { type: 'keyword' },
  words: { type: 'text' },
  cosine: field({ dims: 3, similarity: 'cosine', index_options: { ...graph, type: 'int8_hnsw' } }),
  dot: field({ dims: 3, similarity: 'dot_product', index_options: graph }),
  l2: field({ dims: 3, similarity: 'l2_norm', index_options: graph }),
  product: field({ dims: 3, similarity: 'max_inner_product', index_options: graph }),
  byte_cosine: field({ element_type: 'byte', dims: 3, similarity: 'cosine' }),
  byte_dot: field({ element_type: 'byte', dims: 3, similarity: 'dot_product' }),
  byte_l2: field({ element_type: 'byte', dims: 3, similarity: 'l2_norm' }),
  bit: field({ element_type: 'bit', dims: 24, similarity: 'l2_norm' }),
  inner: { properties: { off: { type: 'dense_vector', dims: 3, index: false } } },
};
/** The score of each field, and the vector that is asked for. */
const SCORES: Readonly<Record<string, (v: readonly number[]) => number>> = {
  cosine: (v) => (1 + cosine(ASKED, v)) / 2,
  dot: (v) => (1 + cosine(ASKED, v)) / 2,
  l2: (v) => 1 / (1 + length(minus(ASKED, v)) ** 2),
  product: (v) => product(dot(ASKED, v)),
  byte_cosine: (v) => (1 + cosine(ASKED, v)) / 2,
  byte_dot: (v) => 0.5 + dot(ASKED, v) / (3 * 32768),
  byte_l2: (v) => 1 / (1 + length(minus(ASKED, v)) ** 2),
  bit: (v) => (24 - v.reduce((sum, it, at) => sum + ones(it ^ (ASKED[at] ?? 0)), 0)) / 24,
};
const askedOf = (name: string) => (name === 'dot' ? unit(ASKED) : ASKED);
const documentOf = (v: readonly number[], at: number) => ({
  ...Object.fromEntries(Object.keys(SCORES).map((name) => [name, name === 'dot' ? unit(v) : v])),
  inner: { off: v },
  kind: at % 2 === 0 ? 'even' : 'odd',
  words: `number ${String(at)} of a list${at % 5 === 0 ? ' of whales' : ''}`,
});
/** Ids and scores of all documents, best first. */
const ranked = (name: string, keep: (at: number) => boolean = () => true) =>
  Object.entries(VECTORS)
    .filter((_, at) => keep(at))
    .map(([id, v]) => [id, SCORES[name]?.(v) ?? 0] as const)
    .sort((a, b) => b[1] - a[1]);

describe.each(ENGINES)('vectors over the $name engine', ({ name: engine, start }) => {
  const run = randomBytes(4).toString('hex');
  const of = (index: string) => `vectors-${run}-${index}`;
  let server: RunningServer;
  // Elasticsearch keeps 8 bits of the vectors of most fields for the scores, too.
  // Elasticsearch searches its own fields, which it compares and checks in its own way.
  const digits = engine === 'cluster' && IS_ELASTICSEARCH ? 2 : 4;

  async function ask(method: string, path: string, body?: unknown, status = 200, apiKey?: string): Promise<any> {
    const answer = await server.request(method, path, body, apiKey === undefined ? {} : { apiKey });
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }

  const search = async (body: unknown, index = of('v')): Promise<Hit[]> =>
    (await ask('POST', `/${index}/_search`, body)).hits.hits;
  const ids = (hits: readonly Hit[]) => hits.map(({ _id }) => _id);
  const pairs = (hits: readonly Hit[]) => hits.map(({ _id, _score }) => [_id, _score] as const);

  function expectRanked(hits: readonly Hit[], expected: readonly (readonly [string, number])[]): void {
    expect(hits).toHaveLength(expected.length);
    // Documents of equal scores may change places.
    pairs(hits).forEach(([id, score], at) => {
      expect(score, `${String(at)}: ${id}`).toBeCloseTo(expected[at]?.[1] ?? 0, digits);
    });
    const least = expected.at(-1)?.[1] ?? 0;
    const certain = expected.filter(([, score]) => score > least + 10 ** -digits).map(([id]) => id);
    expect(ids(hits)).toEqual(expect.arrayContaining(certain));
  }

  beforeAll(async () => {
    server = await start();
    await ask('PUT', `/${of('v')}`, { settings: { number_of_shards: 1 }, mappings: { properties: PROPERTIES } });
    const lines = Object.entries(VECTORS).flatMap(([_id, v], at) => [{ index: { _id } }, documentOf(v, at)]);
    const text = lines.map((it) => `${JSON.stringify(it)}\n`).join('');
    const written = await ask('POST', `/${of('v')}/_bulk?refresh=true`, text);
    expect(written.errors, JSON.stringify(written)).toBe(false);
  }, 120_000);

  afterAll(async () => {
    for (const index of ['v', 'hidden', 'encoded', 'shards', 'late', 'nested'])
      await server.request('DELETE', `/${of(index)}`);
    await server.stop();
  });

  it('shows mappings of dense vectors as they were put, also of a field that came later', async () => {
    const later = { later: field({ dims: 4, similarity: 'l2_norm', index_options: graph }) };
    await ask('PUT', `/${of('late')}`, {});
    await ask('PUT', `/${of('late')}/_mapping`, { properties: later });
    expect((await ask('GET', `/${of('late')}/_mapping`))[of('late')].mappings).toEqual({ properties: later });
    expect((await ask('GET', `/${of('v')}/_mapping`))[of('v')].mappings).toEqual({ properties: PROPERTIES });
  });

  it.each(Object.keys(SCORES))('finds neighbours in the field %s, with their scores', async (name) => {
    const knn = { field: name, query_vector: askedOf(name), k: 5, num_candidates: 50 };
    const best = ranked(name).slice(0, 5);
    const answer = await ask('POST', `/${of('v')}/_search`, { knn });
    expectRanked(answer.hits.hits, best);
    expect(answer.hits.total).toEqual({ value: 5, relation: 'eq' });
    expectRanked(await search({ query: { knn } }), best);
    expectRanked(await search({ retriever: { knn } }), best);
    expectRanked(
      await search({ knn: { ...knn, boost: 2 } }),
      best.map(([id, score]) => [id, 2 * score]),
    );
    const filter = { term: { kind: 'odd' } };
    const odd = ranked(name, (at) => at % 2 === 1).slice(0, 5);
    expectRanked(await search({ knn: { ...knn, filter } }), odd);
    expectRanked(await search({ query: { knn: { ...knn, filter: [filter] } } }), odd);
  });

  it('counts, names, pages and aggregates neighbours, and adds their scores to those of a query', async () => {
    const knn = { field: 'l2', query_vector: ASKED, k: 4, num_candidates: 20 };
    const best = ranked('l2');
    const answer = await ask('POST', `/${of('v')}/_search`, {
      knn: { ...knn, _name: 'near' },
      from: 2,
      size: 10,
      aggs: { kinds: { terms: { field: 'kind' } } },
    });
    expect(ids(answer.hits.hits)).toEqual(best.slice(2, 4).map(([id]) => id));
    expect(answer.hits.hits[0].matched_queries).toEqual(['near']);
    expect(answer.aggregations.kinds.buckets.reduce((sum: number, it: any) => sum + it.doc_count, 0)).toBe(4);
    const constant = { constant_score: { filter: { term: { kind: 'even' } }, boost: 3 } };
    const both = await ask('POST', `/${of('v')}/_search`, { knn, query: constant, size: 30 });
    const near = new Map(best.slice(0, 4));
    const expected = Object.keys(VECTORS)
      .map((id, at) => [id, (at % 2 === 0 ? 3 : 0) + (near.get(id) ?? 0)] as const)
      .filter(([, score]) => score > 0)
      .sort((a, b) => b[1] - a[1]);
    expectRanked(both.hits.hits, expected);
    const two = await search({ knn: [knn, { ...knn, field: 'product', k: 1, boost: 0.5 }], size: 1 });
    const [first] = ranked('product');
    expect(two[0]?._score).toBeCloseTo(0.5 * (first?.[1] ?? 0) + (near.get(first?.[0] ?? '') ?? 0), digits);
    const must = { bool: { must: [{ knn }], filter: [{ term: { kind: 'even' } }] } };
    const even = best.slice(0, 4).filter(([id]) => Number(id.slice(1)) % 2 === 0);
    expectRanked(await search({ query: must }), even);
    expect((await ask('POST', `/${of('v')}/_count`, { query: { knn } })).count).toBe(4);
  });

  it('takes the number of neighbours from the page, and stops at a least similarity', async () => {
    expect(await search({ knn: { field: 'cosine', query_vector: ASKED }, size: 3 })).toHaveLength(3);
    const near = await search({
      knn: { field: 'l2', query_vector: ASKED, k: 20, num_candidates: 24, similarity: 9.5 },
    });
    const within = ranked('l2').filter(([, score]) => score >= 1 / (1 + 9.5 ** 2));
    expect(within.length).toBeGreaterThan(1);
    expect(within.length).toBeLessThan(10);
    expectRanked(near, within);
    const bits = await search({
      knn: { field: 'bit', query_vector: '03fe05', k: 24, num_candidates: 24, similarity: 6 },
      size: 24,
    });
    expectRanked(
      bits,
      ranked('bit').filter(([, score]) => score >= 18 / 24),
    );
  });

  it('takes vectors as texts, in documents and in searches', async () => {
    const index = of('encoded');
    await ask('PUT', `/${index}`, {
      mappings: {
        properties: {
          inner: { properties: { f: { type: 'dense_vector', dims: 3, similarity: 'l2_norm' } } },
          b: { type: 'dense_vector', element_type: 'byte', dims: 3, similarity: 'l2_norm' },
        },
      },
    });
    const bytes = Buffer.from(Int8Array.from([3, -2, 5])).toString('base64');
    await ask('PUT', `/${index}/_doc/one`, { inner: { f: bigEndian([0.5, 10, 6]) }, b: '7f8001', kind: 'x' }, 201);
    const lines = [
      [{ index: { _id: 'two' } }, { 'inner.f': bigEndian([-0.5, 10, 10]).replace(/=+$/u, ''), b: bytes }],
      [{ create: { _id: 'three' } }, { inner: { f: [1, 2, 3] }, b: [0, 0, 1] }],
      [{ index: { _id: 'bad' } }, { inner: { f: 'a vector' } }],
      [{ update: { _id: 'one' } }, { doc: { inner: { f: bigEndian([0.5, 10, 7]) } } }],
    ];
    const text = lines
      .flat()
      .map((it) => `${JSON.stringify(it)}\n`)
      .join('');
    const { items } = await ask('POST', `/${index}/_bulk?refresh=true`, text);
    expect(items.map((it: any) => (Object.values(it) as any)[0].status)).toEqual([201, 201, 400, 200]);
    expect(items[2].index.error.type).toBe('document_parsing_exception');
    expect(items[2].index.error.reason).toContain('must be Base64 of 32-bit big-endian floats');
    for (const [name, vector, encoded, best, score] of [
      ['inner.f', [-0.5, 10, 10], bigEndian([-0.5, 10, 10]), 'two', 1],
      ['inner.f', [0.5, 10, 7], bigEndian([0.5, 10, 7]), 'one', 1],
      ['b', [3, -2, 5], '03fe05', 'two', 1],
      ['b', [127, -128, 1], '7f8001', 'one', 1],
    ] as const) {
      const knn = { field: name, k: 3, num_candidates: 10 };
      const byArray = await search({ knn: { ...knn, query_vector: vector } }, index);
      expect(pairs(await search({ knn: { ...knn, query_vector: encoded } }, index))).toEqual(pairs(byArray));
      expect(byArray[0]?._id).toBe(best);
      expect(byArray[0]?._score).toBeCloseTo(score, digits);
    }
  });

  it.each([
    ['another number of dimensions', { l2: [1, 2] }],
    ['more dimensions', { l2: [1, 2, 3, 4] }],
    ['another number of dimensions as Base64', { l2: bigEndian([1, 2]) }],
    ['half a float', { l2: 'AAAAAAA=' }],
    ['no number', { l2: bigEndian([1, NaN, 3]) }],
    ['no length', { cosine: [0, 0, 0] }],
    ['another length than 1', { dot: [3, 0, 0] }],
    ['parts of a byte', { byte_l2: [1.5, 2, 3] }],
    ['more than a byte', { byte_l2: [300, 2, 3] }],
    ['neither digits nor Base64', { byte_l2: 'xyz' }],
  ])('refuses a document whose vector has %s', async (_, document) => {
    const refused = await ask('POST', `/${of('v')}/_doc`, document, 400);
    expect(refused.error.type).toBe('document_parsing_exception');
    const line = `{"index":{}}\n${JSON.stringify(document)}\n`;
    const { items } = await ask('POST', `/${of('v')}/_bulk`, line);
    expect(items[0].index).toMatchObject({ status: 400, error: { type: 'document_parsing_exception' } });
  });

  it.each([
    [{ field: 'l2', query_vector: [1, 2] }, ''],
    [{ field: 'cosine', query_vector: [0, 0, 0] }, 'zero'],
    [{ field: 'inner.off', query_vector: ASKED }, 'index'],
    [{ field: 'words', query_vector: ASKED }, ''],
    [{ field: 'l2', query_vector: 'xyz' }, ''],
    [{ field: 'l2', query_vector: ASKED, k: 20, num_candidates: 5 }, '[num_candidates] cannot be less than [k]'],
    [{ field: 'l2' }, 'query_vector'],
    [{ field: 'l2', query_vector: ASKED, nope: 1 }, 'nope'],
  ])('refuses to look for %j', async (knn, words) => {
    for (const body of [{ knn: { k: 5, num_candidates: 10, ...knn } }, { query: { knn } }]) {
      const { status, text } = await server.request('POST', `/${of('v')}/_search`, body);
      expect(status, text).toBe(400);
      expect(text).toContain(words);
    }
  });

  it('finds the nearest object of each of k documents, also by a clause about the objects', async () => {
    const index = of('nested');
    const place = { type: 'dense_vector', dims: 2, similarity: 'l2_norm', index_options: { type: 'hnsw' } };
    const passages = { type: 'nested', properties: { page: { type: 'integer' }, name: { type: 'text' }, place } };
    await ask('PUT', `/${index}`, { mappings: { properties: { shelf: { type: 'keyword' }, passages } } });
    const pages = { sailing: 3, cooking: 2, astronomy: 1, empty: 0 };
    const lines = Object.entries(pages).flatMap(([_id, count], at) => [
      { index: { _index: index, _id } },
      {
        shelf: _id.slice(0, 1),
        passages: Array.from({ length: count }, (_, page) => ({
          page,
          name: `page ${'abc'[page] ?? ''}`,
          place: [at, page],
        })),
      },
    ]);
    await ask('POST', '/_bulk?refresh=true', lines.map((it) => `${JSON.stringify(it)}\n`).join(''));
    const near = { field: 'passages.place', query_vector: [0.9, 0], k: 2, num_candidates: 10 };
    const nested = (query: object, more: object = {}) => ({ nested: { path: 'passages', query, ...more } });
    const best: readonly (readonly [string, number])[] = [
      ['cooking', 1 / 1.01],
      ['sailing', 1 / 1.81],
    ];
    expectRanked(await search({ query: nested({ knn: near }, { score_mode: 'max' }) }, index), best);
    expectRanked(await search({ knn: near }, index), best);
    expectRanked(await search({ retriever: { knn: near } }, index), best);
    const { hits } = await ask('POST', `/${index}/_search`, {
      query: {
        bool: {
          must: nested({ knn: near }, { score_mode: 'max', inner_hits: { size: 1, _source: ['passages.page'] } }),
          filter: { term: { shelf: 's' } },
        },
      },
    });
    expectRanked(hits.hits, best.slice(1));
    expect(hits.hits[0].inner_hits.passages.hits.hits[0]._nested).toEqual({ field: 'passages', offset: 0 });
    const filtered = await search({ knn: { ...near, filter: { term: { shelf: 'a' } } } }, index);
    expectRanked(filtered, [['astronomy', 1 / 2.21]]);
    const own = nested({ term: { 'passages.page': 2 } });
    expect(ids(await search({ knn: { ...near, k: 3, filter: own } }, index))).toEqual(['sailing']);
    expect(ids(await search({ query: nested({ knn: { ...near, k: 3, filter: own } }) }, index))).toEqual(['sailing']);
    const ofObject = { knn: { ...near, k: 3, filter: { range: { 'passages.page': { gte: 1 } } } } };
    // Elasticsearch asks its filters about documents, whose fields are others than those of their objects.
    const objects = engine === 'cluster' && IS_ELASTICSEARCH ? [] : ['sailing', 'cooking'];
    expect(new Set(ids(await search(ofObject, index)))).toEqual(new Set(objects));
    const several = [own, { range: { 'passages.page': { gte: 1 } } }, { term: { shelf: 's' } }];
    const both = await search({ knn: { ...near, k: 3, filter: several } }, index);
    expectRanked(both, engine === 'cluster' && IS_ELASTICSEARCH ? [] : [['sailing', 1 / 2.81]]);
    const ofBoth = { bool: { filter: several.slice(1), must_not: { match: { 'passages.name': 'c' } } } };
    const words = [{ multi_match: { query: 'b', fields: ['passages.name'] } }, { term: { shelf: 's' } }];
    for (const filter of [several.slice(1), ofBoth, words, { bool: { must: words } }]) {
      const found = await search({ knn: { ...near, k: 3, filter } }, index);
      expectRanked(found, engine === 'cluster' && IS_ELASTICSEARCH ? [] : [['sailing', 1 / 2.81]]);
    }
    const among = { knn: { ...near, k: 1, filter: nested({ knn: { ...near, query_vector: [2, 0], k: 1 } }) } };
    expectRanked(await search(among, index), [['astronomy', 1 / 2.21]]);
  });

  it('finds nothing in a field that is not mapped', async () => {
    const knn = { field: 'nowhere', query_vector: ASKED, k: 5, num_candidates: 10 };
    expect(await search({ knn })).toEqual([]);
    expect(await search({ query: { knn } })).toEqual([]);
  });

  it.skipIf(engine === 'cluster' && IS_ELASTICSEARCH).each([
    ['cosineSimilarity(params.query_vector, FIELD) + 1.0', (v: number[]) => cosine(ASKED, v) + 1],
    ['dotProduct(params.query_vector, FIELD) + 1000', (v: number[]) => dot(ASKED, v) + 1000],
    ['1 / (1 + l2norm(params["query_vector"], FIELD))', (v: number[]) => 1 / (1 + length(minus(ASKED, v)))],
    [
      '1 / (1 + l1norm(params.query_vector, FIELD))',
      (v: number[]) => 1 / (1 + minus(ASKED, v).reduce((sum, it) => sum + Math.abs(it), 0)),
    ],
    [
      'double value = dotProduct(params.query_vector, FIELD); return sigmoid(1, Math.E, -value);',
      (v: number[]) => 1 / (1 + Math.exp(-dot(ASKED, v))),
    ],
  ])('compares by a script: %s', async (source, naive) => {
    for (const name of ['l2', 'inner.off']) {
      const script = { source: source.replaceAll('FIELD', `'${name}'`), params: { query_vector: ASKED } };
      const found = await search({
        size: 30,
        query: { script_score: { query: { bool: { filter: [{ term: { kind: 'odd' } }] } }, script, boost: 2 } },
      });
      expect(found).toHaveLength(12);
      for (const { _id, _score } of found) {
        const expected = 2 * naive(VECTORS[_id] ?? []);
        expect(Math.abs(_score - expected) / expected, _id).toBeLessThan(1e-4);
      }
    }
  });

  it('looks for neighbours over several shards and indices as over one', async () => {
    const properties = { l2: PROPERTIES.l2, kind: PROPERTIES.kind };
    await ask('PUT', `/${of('shards')}`, { settings: { number_of_shards: 3 }, mappings: { properties } });
    const lines = Object.entries(VECTORS).flatMap(([id, l2]) => [{ index: { _id: `s${id}` } }, { l2 }]);
    const text = lines.map((it) => `${JSON.stringify(it)}\n`).join('');
    await ask('POST', `/${of('shards')}/_bulk?refresh=true`, text);
    const knn = { field: 'l2', query_vector: ASKED, k: 4, num_candidates: 24 };
    const best = ranked('l2').slice(0, 4);
    const answer = await ask('POST', `/${of('shards')}/_search`, { knn });
    expectRanked(
      answer.hits.hits,
      best.map(([id, score]) => [`s${id}`, score]),
    );
    expect(answer.hits.total.value).toBe(4);
    const twice = best.slice(0, 2).flatMap(([id, score]) => [[id, score] as const, [`s${id}`, score] as const]);
    expectRanked(await search({ retriever: { knn } }, `${of('v')},${of('shards')}`), twice);
  });

  it('lets a restricted key look for neighbours, and reads no other index by a filter of them', async () => {
    const { encoded: key } = await ask('POST', '/_security/api_key', {
      name: 'near',
      role_descriptors: { r: { indices: [{ names: [of('v')], privileges: ['read'] }] } },
    });
    await ask('PUT', `/${of('hidden')}/_doc/1?refresh=true`, { kind: 'odd' }, 201);
    const knn = { field: 'l2', query_vector: ASKED, k: 3, num_candidates: 10 };
    expect((await ask('POST', `/${of('v')}/_search`, { knn }, 200, key)).hits.hits).toHaveLength(3);
    const filter = { terms: { kind: { index: of('hidden'), id: '1', path: 'kind' } } };
    for (const body of [
      { knn: { ...knn, filter } },
      { query: { knn: { ...knn, filter } } },
      { retriever: { knn: { ...knn, filter: [filter] } } },
      { retriever: { rrf: { retrievers: [{ knn: { ...knn, filter } }, { knn }] } } },
      { rank: { rrf: {} }, knn: [{ ...knn, filter }, knn] },
    ]) {
      const refused = await server.request('POST', `/${of('v')}/_search`, body, { apiKey: key });
      expect(refused.status, `${JSON.stringify(body)}: ${refused.text}`).toBeGreaterThanOrEqual(400);
      expect(refused.text).not.toContain('"hits":[{');
    }
  });

  it('leaves vectors out of what is shown', async () => {
    const index = of('left');
    const properties = { d: { type: 'dense_vector', dims: 2 }, o: { properties: { s: { type: 'sparse_vector' } } } };
    await ask('PUT', `/${index}`, { mappings: { properties } });
    const whole = { t: 'text', d: [1, 2], o: { s: { a: 1 }, n: 1 } };
    const rest = { t: 'text', o: { n: 1 } };
    await ask('PUT', `/${index}/_doc/1?refresh=true`, whole, 201);
    const media = 'application/vnd.elasticsearch+json; compatible-with=9';
    const sourceOf = async (method: string, path: string, body?: object): Promise<any> => {
      const type = body === undefined ? {} : { 'content-type': media };
      const answer = await server.request(method, path, body, { headers: { accept: media, ...type } });
      expect(answer.status, answer.text).toBe(200);
      return (answer.body.hits?.hits[0] ?? answer.body.docs?.[0] ?? answer.body)._source ?? answer.body;
    };
    for (const [says, expected] of [
      [true, rest],
      [false, whole],
    ] as const) {
      const flag = `_source_exclude_vectors=${String(says)}`;
      const source = { exclude_vectors: says };
      expect(await sourceOf('GET', `/${index}/_doc/1?${flag}`)).toEqual(expected);
      expect(await sourceOf('GET', `/${index}/_source/1?${flag}`)).toEqual(expected);
      expect(await sourceOf('GET', `/${index}/_search?${flag}`)).toEqual(expected);
      expect(await sourceOf('GET', `/${index}/_search?${flag}&_source_excludes=o`)).not.toHaveProperty('o');
      expect(await sourceOf('POST', `/${index}/_search`, { _source: source })).toEqual(expected);
      expect(await sourceOf('POST', `/${index}/_mget`, { docs: [{ _id: '1', _source: source }] })).toEqual(expected);
      const retriever = { rrf: { retrievers: [{ standard: { query: { match_all: {} } } }] } };
      expect(await sourceOf('POST', `/${index}/_search`, { retriever, _source: source })).toEqual(expected);
      // Other filters go on top.
      const both = await sourceOf('POST', `/${index}/_search`, { _source: { ...source, excludes: ['o'] } });
      expect(both).toEqual(says ? { t: 'text' } : { t: 'text', d: [1, 2] });
    }
    await ask('DELETE', `/${index}`);
  });
});
