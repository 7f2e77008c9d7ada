// Nearest neighbours over REST: every place a kNN clause may stand, every element type, and what is refused.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;

const BBQ = {
  index: true,
  similarity: 'cosine',
  index_options: { type: 'bbq_hnsw', m: 16, ef_construction: 100, rescore_vector: { oversample: 3 } },
};

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false'] });
  const dense = (rest: object) => ({ type: 'dense_vector', ...rest });
  const created = await server.request('PUT', '/v', {
    mappings: {
      properties: {
        name: { type: 'keyword' },
        float: dense({ dims: 3, similarity: 'l2_norm', index_options: { type: 'hnsw', m: 8 } }),
        other: dense({ dims: 2, similarity: 'max_inner_product', index_options: { type: 'int8_flat' } }),
        cosine: dense({ dims: 2 }),
        unit: dense({ dims: 2, similarity: 'dot_product', index_options: { type: 'flat' } }),
        byte: dense({ element_type: 'byte', similarity: 'dot_product' }),
        bit: dense({ element_type: 'bit', dims: 16 }),
        off: dense({ dims: 2, index: false }),
        // As version 9 shows its default.
        bbq: dense({ ...BBQ, dims: 64 }),
        short: dense({ index_options: { type: 'bbq_flat' } }),
        odd: dense({ index_options: { type: 'int4_hnsw' } }),
      },
    },
  });
  expect(created.status, created.text).toBe(200);
  const documents = [
    { name: 'a', float: [0, 0, 0], other: [1, 0], cosine: [1, 0], unit: [1, 0], byte: [127, -128, 10], bit: [0, -1] },
    { name: 'b', float: [1, 0, 0], other: [0, 2], cosine: [1, 1], unit: [0, 1], byte: '400ae2', bit: '00ff' },
    { name: 'a', float: [2, 0, 0], other: [-1, 0], cosine: [-1, 0], unit: [-1, 0], byte: [0, 1.0, 0], bit: [1, 0] },
    { name: 'none' },
  ];
  for (const [id, body] of documents.entries()) {
    const written = await server.request('PUT', `/v/_doc/${id.toString()}?refresh=true`, body);
    expect(written.status, written.text).toBe(201);
  }
});

afterAll(async () => {
  await server.stop();
});

async function hits(body: object): Promise<[string, number][]> {
  const found = await server.request('POST', '/v/_search', body);
  expect(found.status, found.text).toBe(200);
  return found.body.hits.hits.map((hit: { _id: string; _score: number }) => [hit._id, hit._score]);
}

const near = { field: 'float', query_vector: [0, 0, 0] };

describe('a kNN clause', () => {
  it('is a section, alone or in a list, whose parts add up', async () => {
    expect(await hits({ knn: { ...near, k: 2 } })).toEqual([
      ['0', 1],
      ['1', 0.5],
    ]);
    const other = { field: 'other', query_vector: [0, 1], k: 1, boost: 2 };
    expect(await hits({ knn: [{ ...near, k: 2 }, other] })).toEqual([
      ['1', 6.5],
      ['0', 1],
    ]);
    const both = await hits({ knn: { ...near, k: 1 }, query: { constant_score: { filter: { term: { name: 'b' } } } } });
    expect(both.map(([id]) => id).sort()).toEqual(['0', '1']);
  });

  it('is a query, also inside others, and a retriever', async () => {
    expect(await hits({ query: { knn: near }, size: 2 })).toEqual([
      ['0', 1],
      ['1', 0.5],
    ]);
    expect(await hits({ query: { knn: { ...near, num_candidates: 1 } } })).toEqual([['0', 1]]);
    const bool = { bool: { must: [{ knn: { ...near, k: 3 } }], must_not: [{ term: { name: 'b' } }] } };
    expect((await hits({ query: bool })).map(([id]) => id)).toEqual(['0', '2']);
    expect(await hits({ retriever: { knn: { ...near, k: 1, num_candidates: 5 } } })).toEqual([['0', 1]]);
  });

  it('filters before it cuts', async () => {
    const filter = { term: { name: 'b' } };
    expect(await hits({ knn: { ...near, k: 1, filter } })).toEqual([['1', 0.5]]);
    expect(await hits({ knn: { ...near, k: 1, filter: [filter, { term: { name: 'a' } }] } })).toEqual([]);
  });

  it('knows a threshold of similarity', async () => {
    expect((await hits({ knn: { ...near, k: 3, similarity: 1.5 } })).map(([id]) => id)).toEqual(['0', '1']);
    const byBits = { field: 'bit', query_vector: '00ff', k: 3, similarity: 4 };
    expect((await hits({ knn: byBits })).map(([id]) => id)).toEqual(['0', '1']);
  });

  it('shows exact scores whatever the type of index', async () => {
    for (const rescore_vector of [undefined, { oversample: 0 }, { oversample: 3 }])
      expect(await hits({ knn: { field: 'other', query_vector: [0, 1], k: 3, rescore_vector } })).toEqual([
        ['1', 3],
        ['0', 1],
        ['2', 1],
      ]);
    const cosine = await hits({ knn: { field: 'cosine', query_vector: [2, 0] } });
    expect(cosine.map(([id]) => id)).toEqual(['0', '1', '2']);
    expect(cosine[1]?.[1]).toBeCloseTo((1 + Math.SQRT1_2) / 2, 5);
    expect(await hits({ knn: { field: 'unit', query_vector: [1, 0] } })).toEqual([
      ['0', 1],
      ['1', 0.5],
      ['2', 0],
    ]);
  });

  it('takes bytes and bits, as numbers or hexadecimal', async () => {
    const dot = (a: number[], b: number[]) => a.reduce((sum, x, at) => sum + x * (b[at] ?? 0), 0);
    const expected = [
      [127, -128, 10],
      [64, 10, -30],
      [0, 1, 0],
    ].map((vector) => 0.5 + dot(vector, [64, 10, -30]) / (32768 * 3));
    for (const query_vector of [[64, 10, -30], '400ae2']) {
      const found = await hits({ knn: { field: 'byte', query_vector, k: 3 } });
      expect(found.map(([id]) => id)).toEqual(['0', '1', '2']);
      found.forEach(([, score], at) => {
        expect(score).toBeCloseTo(expected[at] ?? 0, 5);
      });
    }
    expect(await hits({ knn: { field: 'bit', query_vector: [0, -1], k: 3 } })).toEqual([
      ['0', 1],
      ['1', 1],
      ['2', (16 - 9) / 16],
    ]);
  });

  it('gives every hit a score, also where products are too large for a float', async () => {
    const largest = 3.4028235e38;
    const query = { field: 'other', query_vector: [3e38, 3e38], k: 3 };
    const found = await hits({ knn: query });
    expect(found.map(([id]) => id)).toEqual(['1', '0', '2']);
    expect(found[0]?.[1]).toBe(largest);
    expect(found[2]?.[1]).toBeGreaterThanOrEqual(0);
    expect((await hits({ knn: { ...query, boost: 2 } })).slice(0, 2)).toEqual([
      ['0', largest],
      ['1', largest],
    ]);
    expect(await hits({ knn: { field: 'float', query_vector: [3e38, 0, 0], k: 1 } })).toEqual([['0', 0]]);
  });

  it('finds nothing in a field that is not mapped', async () => {
    expect(await hits({ knn: { field: 'nowhere', query_vector: [1], k: 1 } })).toEqual([]);
  });
});

describe('a dense_vector field', () => {
  it('is shown with its defaults, and with the dimensions of its first document', async () => {
    const { properties } = (await server.request('GET', '/v/_mapping')).body.v.mappings;
    expect(properties.byte).toEqual({
      type: 'dense_vector',
      element_type: 'byte',
      dims: 3,
      index: true,
      similarity: 'dot_product',
    });
    expect(properties.float.index_options).toEqual({ type: 'hnsw', m: 8, ef_construction: 100 });
    expect(properties.cosine.index_options).toEqual({ type: 'int8_hnsw', m: 16, ef_construction: 100 });
    expect(properties.bbq).toEqual({ type: 'dense_vector', dims: 64, ...BBQ });
    expect(properties.off).toEqual({ type: 'dense_vector', dims: 2, index: false });
  });

  it.each([
    ['float', [1, 2], 'has a different number of dimensions [2] than defined in the mapping [3]'],
    ['float', [1, 2, 3, 4], 'has more dimensions than defined in the mapping [3]'],
    ['float', [1e40, 0, 0], 'do not support NaN or infinite values'],
    ['float', '000102', 'must be Base64 of 32-bit big-endian floats'],
    ['cosine', [0, 0], 'The [cosine] similarity does not support vectors with zero magnitude'],
    ['cosine', [1e30, 0], 'NaN or Infinite magnitude detected'],
    ['float', [1e30, 0, 0], 'NaN or Infinite magnitude detected'],
    ['other', [3e38, 3e38], 'NaN or Infinite magnitude detected'],
    ['unit', [1, 1], 'The [dot_product] similarity can only be used with unit-length vectors'],
    ['byte', [128, 0, 0], 'only support integers between [-128, 127] but found [128] at dim [0];'],
    ['byte', [0, 0.5, 0], 'only support non-decimal values but found decimal value [0.5] at dim [1];'],
    ['byte', '0102', 'has a different number of dimensions [2]'],
    ['byte', 'xy0102', 'not a hexadecimal digit'],
    ['short', [1, 2], 'bbq_flat does not support dimensions fewer than 64; provided=2'],
    ['odd', [1, 2, 3], 'int4_hnsw only supports even dimensions; provided=3'],
    ['bit', [0], 'has a different number of dimensions [8] than defined in the mapping [16]'],
  ])('%s refuses %j', async (field, value, reason) => {
    const refused = await server.request('PUT', '/v/_doc/bad', { [field]: value });
    expect(refused.status, refused.text).toBe(400);
    expect(refused.body.error.type).toBe('document_parsing_exception');
    expect(refused.text).toContain(reason);
  });
});

describe('what is refused in a clause', () => {
  it.each([
    [{ k: 0 }, '[k] must be greater than 0'],
    [{ k: 5, num_candidates: 4 }, '[num_candidates] cannot be less than [k]'],
    [{ num_candidates: 4 }, '[num_candidates] cannot be less than [k]'],
    [{ k: 1, num_candidates: 10001 }, '[num_candidates] cannot exceed [10000]'],
    [{ query_vector: undefined }, 'either [query_vector_builder] or [query_vector] must be provided'],
    [{ query_vector: [1] }, 'the query vector has a different number of dimensions [1] than the document vectors [3]'],
    [{ query_vector: '0102030' }, 'failed to parse field [query_vector]'],
    [{ query_vector: { a: 1 } }, 'query_vector'],
    [{ field: 'name' }, '[knn] queries are only supported on [dense_vector] fields'],
    [{ field: 'off', query_vector: [1, 2] }, 'to perform knn search on field [off], its mapping must have [index] set'],
    [
      { field: 'byte', query_vector: [0.5, 0, 0] },
      'non-decimal values but found decimal value [0.5] at dim [0]; Preview',
    ],
    [{ field: 'byte', query_vector: [500, 0, 0] }, 'integers between [-128, 127] but found [500] at dim [0];'],
    [{ field: 'cosine', query_vector: [0, 0] }, 'does not support vectors with zero magnitude'],
    [{ field: 'unit', query_vector: [1, 1] }, 'can only be used with unit-length vectors'],
    [{ inner_hits: {} }, '[inner_hits] of [knn] needs a field inside a [nested] one'],
    [{ rescore_vector: { oversample: 0.5 } }, '[oversample] must be >= 1.0'],
    [{ visit_percentage: 5 }, 'visit_percentage'],
  ])('%j', async (part, reason) => {
    const refused = await server.request('POST', '/v/_search', { knn: { ...near, ...part } });
    expect(refused.status, refused.text).toBe(400);
    expect(refused.text).toContain(reason);
  });

  it.each([
    [{ element_type: 'bfloat16' }, 'invalid element_type [bfloat16]'],
    [{ index_options: { type: 'bbq_disk' } }, '[bbq_disk] for field [v] is not supported'],
    [{ dims: 3, index_options: { type: 'bbq_hnsw' } }, 'does not support dimensions fewer than 64; provided=3'],
    [{ dims: 65, index_options: { type: 'int4_flat' } }, 'only supports even dimensions; provided=65'],
    [{ element_type: 'byte', index_options: { type: 'int8_hnsw' } }, '[element_type] cannot be [byte]'],
    [{ dims: 5000 }, 'in the range [1, 4096] but was [5000]'],
  ])('the mapping %j', async (part, reason) => {
    const mappings = { properties: { v: { type: 'dense_vector', ...part } } };
    const refused = await server.request('PUT', '/never', { mappings });
    expect(refused.status, refused.text).toBe(400);
    expect(refused.body.error.type).toBe('mapper_parsing_exception');
    expect(refused.text).toContain(reason);
  });
});

describe('codes of one bit and of four', () => {
  const DIMS = 64;
  const COUNT = 10_500;
  const components = (seed: number): number[] => {
    let state = seed + 1;
    return Array.from({ length: DIMS }, () => {
      state = (state * 48271) % 2147483647;
      return state / 2147483647 - 0.5;
    });
  };
  const vectors = Array.from({ length: COUNT }, (_, at) => components(at * 7919));
  const mappings = (type: string) => ({
    properties: {
      even: { type: 'boolean' },
      v: { type: 'dense_vector', dims: DIMS, similarity: 'l2_norm', index_options: { type } },
    },
  });
  const score = (query: number[], at: number) =>
    1 / (1 + query.reduce((sum, x, place) => sum + (x - (vectors[at]?.[place] ?? 0)) ** 2, 0));

  beforeAll(async () => {
    const created = await server.request('PUT', '/codes', { mappings: mappings('flat') });
    expect(created.status, created.text).toBe(200);
    const lines = vectors.map(
      (v, at) => `{"index":{"_id":"${String(at)}"}}\n${JSON.stringify({ even: at % 2 === 0, v })}\n`,
    );
    const written = await server.request('POST', '/codes/_bulk?refresh=true', lines.join(''));
    expect(written.body.errors, written.text.slice(0, 500)).toBe(false);
  });

  // Each type may become the next.
  it.each([
    ['int4_flat', 'quantized_vector_scan'],
    ['int4_hnsw', 'graph_walk'],
    ['bbq_hnsw', 'graph_walk'],
  ])('of %s find the nearest by exact scores (%s)', async (type, executor) => {
    const changed = await server.request('PUT', '/codes/_mapping', mappings(type));
    expect(changed.status, changed.text).toBe(200);
    // A document without a vector makes another segment, so that there is something to merge.
    expect((await server.request('PUT', '/codes/_doc/new?refresh=true', { even: true })).body._shards.failed).toBe(0);
    const merged = await server.request('POST', '/codes/_forcemerge?max_num_segments=1');
    expect(merged.status, merged.text).toBe(200);
    const knn = { field: 'v', query_vector: components(5), k: 10 };
    const profiled = await server.request('POST', '/codes/_search', { knn, profile: true, _source: false });
    expect(JSON.stringify(profiled.body.profile)).toContain(executor);
    let right = 0;
    for (let at = 0; at < 20; at += 1) {
      const query_vector = components(at * 7919 + 3);
      const ask = async (filter?: object) => {
        const knn = { field: 'v', query_vector, k: 10, num_candidates: 200, filter };
        const found = await server.request('POST', '/codes/_search', { knn, _source: false });
        expect(found.status, found.text).toBe(200);
        const hits = found.body.hits.hits as { _id: string; _score: number }[];
        for (const hit of hits) expect(hit._score).toBeCloseTo(score(query_vector, Number(hit._id)), 5);
        return hits.map((hit) => Number(hit._id));
      };
      const found = await ask();
      const scores = vectors.map((_, id) => score(query_vector, id));
      const best = [...scores.keys()].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0)).slice(0, 10);
      right += best.filter((id) => found.includes(id)).length;
      expect((await ask({ term: { even: true } })).every((id) => id % 2 === 0)).toBe(true);
    }
    expect(right).toBeGreaterThan(type === 'bbq_hnsw' ? 60 : 120);
  });
});
