// What dense vectors are in a cluster: mappings, values, and what looks for them.
import { describe, expect, it } from 'vitest';

import { type DenseField, knnVector, readDenseField } from './dense-fields.js';
import { leastScore } from './knn.js';
import { type NeighbourContext, findNeighbours } from './neighbours.js';
import type { Product } from './product.js';
import { hasNested } from './queries.js';
import { SearchBody } from './search-body.js';
import type { Asked, Transport } from './transport.js';
import { withVectors } from './vector-documents.js';
import type { VectorFields } from './vector-fields.js';
import { documentVector, queryVector } from './vector-values.js';

const OPENSEARCH: Product = {
  name: 'OpenSearch',
  version: '2.19.1',
  major: 2,
  neuralSparse: true,
  knn: true,
  vectorEngine: 'lucene',
};
const ELASTICSEARCH: Product = { ...OPENSEARCH, name: 'Elasticsearch', version: '8.19.0', major: 8, knn: false };

const dense = (more: object = {}): DenseField => readDenseField('v', { type: 'dense_vector', dims: 2, ...more });
const floats = (...numbers: number[]): string => {
  const bytes = Buffer.alloc(4 * numbers.length);
  numbers.forEach((number, at) => bytes.writeFloatBE(number, 4 * at));
  return bytes.toString('base64');
};
const reasonOf = (work: () => unknown): string => {
  try {
    work();
    return '';
  } catch (error) {
    return (error as { reason: string }).reason;
  }
};

describe('a dense_vector field in OpenSearch', () => {
  it.each([
    [{}, 'float', 'cosinesimil'],
    [{ similarity: 'dot_product' }, 'float', 'cosinesimil'],
    [{ similarity: 'l2_norm' }, 'float', 'l2'],
    [{ similarity: 'max_inner_product' }, 'float', 'innerproduct'],
    [{ element_type: 'byte' }, 'byte', 'cosinesimil'],
    [{ element_type: 'byte', similarity: 'dot_product' }, 'byte', 'innerproduct'],
    [{ element_type: 'bit', dims: 16 }, 'binary', 'hamming'],
    [{ index: false }, 'float', 'l2'],
  ])('of %j has vectors of type %s in a space %s', (more, type, space) => {
    const made = knnVector('v', { type: 'dense_vector', dims: 8, ...more }, OPENSEARCH);
    expect(made).toMatchObject({
      type: 'knn_vector',
      data_type: type,
      method: { space_type: space, engine: 'lucene' },
    });
  });

  it('keeps the numbers of its graph, and has the engine that is chosen', () => {
    const options = { type: 'int8_hnsw', m: 8, ef_construction: 50 };
    const field = { type: 'dense_vector', dims: 3, index_options: options, meta: { unit: 'x' } };
    expect(knnVector('v', field, { ...OPENSEARCH, vectorEngine: 'faiss' })).toEqual({
      type: 'knn_vector',
      dimension: 3,
      data_type: 'float',
      meta: { unit: 'x' },
      method: {
        name: 'hnsw',
        engine: 'faiss',
        space_type: 'cosinesimil',
        parameters: { m: 8, ef_construction: 50 },
      },
    });
  });

  it.each([
    [{ dims: undefined }, 'without [dims]'],
    [{ dims: 5000 }, 'should be in the range [1, 4096] but was [5000]'],
    [{ element_type: 'bit', dims: 12 }, 'should be a multiple of 8'],
    [{ element_type: 'int' }, 'invalid element_type [int]'],
    [{ similarity: 'near' }, 'Unknown value [near] for field [similarity]'],
    [{ element_type: 'bit', similarity: 'cosine' }, '[cosine] similarity is not supported for [bit] vectors'],
    [{ index: false, similarity: 'cosine' }, 'Field [similarity] can only be specified'],
    [{ index_options: { type: 'bbq_disk' } }, 'index type [bbq_disk]'],
    [{ index_options: { type: 'bbq_flat' } }, 'bbq_flat does not support dimensions fewer than 64; provided=8'],
    [{ dims: 7, index_options: { type: 'int4_hnsw' } }, 'int4_hnsw only supports even dimensions; provided=7'],
    [{ nope: 1 }, 'unknown parameter [nope] on mapper [v] of type [dense_vector]'],
  ])('is refused by name with %j', (more, words) => {
    const field = { type: 'dense_vector', dims: 8, ...more };
    expect(reasonOf(() => knnVector('v', field, OPENSEARCH))).toContain(words);
  });

  it.each(['int4_hnsw', 'bbq_hnsw', 'int4_flat', 'bbq_flat'])('is a graph as well with codes of %s', (type) => {
    const field = { type: 'dense_vector', dims: 64, index_options: { type, rescore_vector: { oversample: 3 } } };
    expect(knnVector('v', field, OPENSEARCH)).toMatchObject({ method: { name: 'hnsw' } });
  });

  it('is refused where there is no plugin for it', () => {
    const made = (): unknown => knnVector('v', { type: 'dense_vector', dims: 8 }, { ...OPENSEARCH, knn: false });
    expect(reasonOf(made)).toContain('the cluster has no k-NN plugin');
  });

  it.each([
    [{}, 0.5, 0.75],
    [{ similarity: 'dot_product' }, -1, 0],
    [{ similarity: 'l2_norm' }, 2, 0.2],
    [{ similarity: 'max_inner_product' }, 3, 4],
    [{ similarity: 'max_inner_product' }, -3, 0.25],
    [{ element_type: 'bit', dims: 16 }, 4, 0.2],
  ])('of %j is as similar as %d from a score of %d', (more, similarity, score) => {
    expect(leastScore(similarity, dense(more))).toBe(score);
  });
});

describe('a vector that is a text', () => {
  it('is Base64 of floats, with or without padding, or hexadecimal digits of bytes', () => {
    expect(queryVector('PwAAAEEgAABAwAAA')).toEqual({ vector: [0.5, 10, 6] });
    expect(documentVector(floats(1, 2).replace(/=+$/u, ''), dense())).toEqual({ vector: [1, 2] });
    expect(queryVector('7f80')).toEqual({ vector: [127, -128] });
    const byte = dense({ element_type: 'byte' });
    expect(documentVector('7f80', byte)).toEqual({ vector: [127, -128] });
    expect(documentVector(Buffer.from([127, 128]).toString('base64'), byte)).toEqual({ vector: [127, -128] });
    // Four digits are two bytes, whatever is wanted; as Base64 they would be three.
    expect(documentVector('abcd', dense({ element_type: 'byte', dims: 3 }))).toEqual({ vector: [-85, -51] });
  });

  it.each(['', 'no', 'AAAA', 'AAAAAAA', 'äöü', 'PwAAAEEgAABAwA=A'])('is no vector: %j', (text) => {
    expect(documentVector(text, dense())).toMatchObject({ problem: expect.stringContaining('32-bit') as string });
  });

  it('is found in a document wherever its field stands, and all else stays as it is written', () => {
    const fields = new Map([['a.v', dense()]]);
    const watched = { fields, always: new Set<string>() };
    const text = floats(1, 2);
    const sent = (source: string): unknown => withVectors(source, watched);
    expect(sent(`{"n": 9007199254740993, "a" : {"v": "${text}"}}`)).toBe('{"n": 9007199254740993, "a" : {"v": [1,2]}}');
    expect(sent(`{"a.v":"${text}"}`)).toBe('{"a.v":[1,2]}');
    expect(sent(`{"a":{"\\u0076":"${text}"}}`)).toBe('{"a":{"\\u0076":[1,2]}}');
    expect(sent(`[{"a":[{"v":"${text}"}]}]`)).toBe('[{"a":[{"v":[1,2]}]}]');
    expect(withVectors(`{"doc":{"a":{"v":"${text}"}}}`, watched, 'update')).toBe('{"doc":{"a":{"v":[1,2]}}}');
    for (const other of [`{"v":"${text}"}`, '{"a":{"v":[1,2]}}', `{"b":{"v":"${text}"}}`, '{"a":{"v":null}}'])
      expect(sent(other), other).toBeUndefined();
    expect(reasonOf(() => sent(`{"a":{"v":"${floats(1)}"}}`))).toContain('a different number of dimensions [1]');
    expect(reasonOf(() => sent(`{"a":{"v":"${floats(1, 2, 3)}"}}`))).toContain('more dimensions than defined');
    expect(reasonOf(() => sent(`{"a":{"v":"${floats(0, 0)}"}}`))).toContain('zero magnitude');
  });
});

describe('neighbours in OpenSearch', () => {
  const ASKED = { field: 'v', query_vector: [1, 0] };

  /** What a search becomes where two documents are found first; with what was asked for them. */
  async function made(
    body: object,
    field = dense(),
    product = OPENSEARCH,
    pages = false,
  ): Promise<{ asked: any[]; sent: any }> {
    const asked: any[] = [];
    const hits = [
      { _index: 'i', _id: '1' },
      { _index: 'i', _id: '2' },
    ];
    const transport = {
      ask: ({ body: sent }: Asked) => {
        const lines = String(sent).trim().split('\n');
        asked.push(...lines.filter((_, at) => at % 2 === 1).map((line) => JSON.parse(line) as unknown));
        const responses = lines.filter((_, at) => at % 2 === 1).map(() => ({ hits: { hits } }));
        return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify({ responses })), text: false });
      },
    } as unknown as Transport;
    const vectors = {
      of: () => Promise.resolve([new Map([['v', field]])]),
      paths: () => Promise.resolve(['v', 'o.foreign']),
    } as unknown as VectorFields;
    const context: NeighbourContext = { transport, product, vectors };
    const read = new SearchBody(JSON.stringify(body), { product, restricted: true, pages });
    read.resolve({ tokens: () => ({ a: 1 }), vector: () => [0, 1], isBlank: () => false });
    await findNeighbours(context, 'i', {}, read);
    return { asked, sent: JSON.parse(read.translated()) as unknown };
  }

  const found = (vector = [1, 0]) => ({
    knn: {
      v: {
        vector,
        k: 2,
        filter: {
          bool: {
            should: [{ bool: { filter: [{ ids: { values: ['1', '2'] } }, { term: { _index: 'i' } }] } }],
            minimum_should_match: 1,
          },
        },
        ignore_unmapped: true,
      },
    },
  });

  it('are looked for first, among as many candidates as the native engine looks at', async () => {
    const { asked, sent } = await made({ knn: { ...ASKED, k: 5 }, size: 3, sort: ['n'] });
    expect(asked).toEqual([
      {
        query: { knn: { v: { vector: [1, 0], k: 100, ignore_unmapped: true } } },
        size: 5,
        _source: false,
        track_total_hits: false,
      },
    ]);
    expect(sent).toEqual({ query: found(), size: 3, sort: ['n'] });
  });

  it.each([
    [{ knn: ASKED }, 10, 100],
    [{ knn: ASKED, size: 200 }, 200, 300],
    [{ query: { knn: ASKED } }, 15, 100],
    [{ query: { knn: { ...ASKED, num_candidates: 7 } } }, 7, 7],
    [{ query: { knn: { ...ASKED, k: 80 } } }, 80, 120],
    [{ retriever: { knn: ASKED }, size: 4 }, 4, 100],
  ])('of %j are %d of %d candidates', async (body, k, candidates) => {
    const { asked } = await made(body);
    expect(asked[0]).toMatchObject({ size: k, query: { knn: { v: { k: candidates } } } });
  });

  it.each([
    [{ knn: { ...ASKED, k: 5 }, size: 3, from: 2, _source: false }],
    [{ retriever: { knn: { ...ASKED, k: 5 } }, size: 5 }],
  ])('are asked for at once where a page of the best is all: %j', async (body) => {
    const { asked, sent } = await made(body, dense(), OPENSEARCH, true);
    expect(asked).toEqual([]);
    expect(sent.query).toEqual({ knn: { v: { vector: [1, 0], k: 100, ignore_unmapped: true } } });
  });

  it.each([
    [{ knn: { ...ASKED, k: 5 }, size: 3, from: 3 }],
    [{ knn: { ...ASKED, k: 5 }, size: 3, aggs: {} }],
    [{ knn: { ...ASKED, k: 5, similarity: 0.5 }, size: 3 }],
    [{ knn: [ASKED, ASKED] }],
    [{ knn: ASKED, query: { match_all: {} } }],
    [{ query: { knn: ASKED } }],
    [{ retriever: { knn: { ...ASKED, min_score: 1 } } }],
    [{ retriever: { rrf: { retrievers: [{ knn: ASKED }] } } }],
  ])('are looked for first by %j', async (body) => {
    expect((await made(body, dense(), OPENSEARCH, true)).asked).not.toEqual([]);
  });

  it('pass filters in the cluster’s form, and have a least score', async () => {
    const sparse = { weighted_tokens: { t: { tokens: { a: 1 } } } };
    const knn = { ...ASKED, filter: [{ term: { k: 1 } }, sparse], similarity: 0.5 };
    const { asked } = await made({ knn });
    expect(asked[0]).toMatchObject({ min_score: 0.75 });
    expect(asked[0].query.knn.v.filter.bool.filter).toEqual([
      { term: { k: 1 } },
      { bool: { should: [{ neural_sparse: { t: { query_tokens: { a: 1 } } } }] } },
    ]);
  });

  it('are looked for among those that their filter has found before, however deep', async () => {
    const filter = { bool: { must_not: { knn: { ...ASKED, filter: { knn: { ...ASKED, query_vector: [2, 0] } } } } } };
    const { asked, sent } = await made({ query: { knn: { ...ASKED, filter } }, knn: ASKED });
    const these = found().knn.v.filter;
    expect(asked.map(({ query }) => [query.knn.v.vector, query.knn.v.filter])).toEqual([
      [[2, 0], undefined],
      [[1, 0], undefined],
      [[1, 0], these],
      [[1, 0], { bool: { must_not: these } }],
    ]);
    expect(sent).toEqual({ query: { bool: { should: [found(), found()] } } });
  });

  it.each([
    ['documents', { nested: { path: 'o', query: { term: { 'o.k': 1 } } } }, true],
    ['objects', { bool: { must: { term: { 'o.k': { value: 1, boost: 2 } } } } }, false],
    ['objects below', { nested: { path: 'o.p', query: { match_all: {} } } }, false],
    ['the documents of a field', { exists: { field: 'k', _name: 'n' } }, true],
  ])('are compared one by one where a filter is about other objects: of %s', async (_, filter, isOfDocument) => {
    const other = { nested: { path: 'u', query: { match_all: {} } } };
    const knn = { ...ASKED, field: 'v', filter: [other, filter] };
    const { asked } = await made({ knn }, { ...dense(), nested: 'o' });
    const { must, filter: outer } = asked[0].query.bool;
    expect(outer).toEqual(isOfDocument ? [other, filter] : [other]);
    const { script, query } = must[0].nested.query.script_score;
    expect(script.params).toEqual({ field: 'v', query_value: [1, 0], space_type: 'cosinesimil' });
    expect(query.bool.filter).toEqual([{ exists: { field: 'v' } }, ...(isOfDocument ? [] : [filter])]);
  });

  const IN_OBJECTS = { ...dense(), nested: 'o' };
  const ofObject = { term: { 'o.k': 1 } };
  const ofDocument = { term: { k: 1 } };

  it.each([
    ['as two filters', [ofDocument, ofObject], [ofDocument], [ofObject]],
    ['in a bool', { bool: { must: ofObject, filter: [ofDocument] } }, [ofDocument], [ofObject]],
    [
      'in a bool in another one, where nothing may be',
      { bool: { filter: [{ constant_score: { filter: { bool: { must_not: [ofDocument, ofObject] } } } }] } },
      [{ bool: { must_not: [ofDocument] } }],
      [{ bool: { must_not: [ofObject] } }],
    ],
    [
      'beside conditions of which some have to hold',
      { bool: { must: [ofDocument], should: [ofObject, { exists: { field: 'o.x' } }], minimum_should_match: 2 } },
      [ofDocument],
      [{ bool: { should: [ofObject, { exists: { field: 'o.x' } }], minimum_should_match: 2 } }],
    ],
    ['beside conditions that need not hold', { bool: { must: [ofDocument], should: [ofObject] } }, [ofDocument], []],
  ])(
    'are compared one by one where a filter is about objects and about documents: %s',
    async (_, filter, outer, inner) => {
      const { asked } = await made({ knn: { ...ASKED, filter } }, IN_OBJECTS);
      const { bool } = asked[0].query;
      if (inner.length === 0) {
        expect(asked[0].query.nested.query.knn.v.filter).toEqual(filter);
        return;
      }
      expect(bool.filter).toEqual(outer);
      expect(bool.must[0].nested.query.script_score.query.bool.filter).toEqual([{ exists: { field: 'v' } }, ...inner]);
    },
  );

  it.each([
    { multi_match: { query: 'x', fields: ['o.k^2', 'o.*'] } },
    { query_string: { query: 'x', default_field: 'o.k' } },
    { query_string: { query: '(o.k:x AND +o\\.k:y)' } },
    { simple_query_string: { query: 'x', fields: ['o.k'] } },
    { geo_distance: { distance: '1km', distance_type: 'plane', 'o.place': { lat: 0, lon: 0 } } },
    { geo_bounding_box: { 'o.place': {}, validation_method: 'STRICT', ignore_unmapped: true } },
  ])('are compared where %j is about objects, and where its fields are those of documents', async (filter) => {
    const { asked } = await made({ knn: { ...ASKED, filter: [ofDocument, filter] } }, IN_OBJECTS);
    expect(asked[0].query.bool.filter).toEqual([ofDocument]);
    const ofAll = JSON.parse(JSON.stringify(filter).replaceAll('o.', '').replaceAll('o\\\\.', '')) as object;
    const other = await made({ knn: { ...ASKED, filter: [ofObject, ofAll] } }, IN_OBJECTS);
    expect(other.asked[0].query.bool.filter).toEqual([ofAll]);
  });

  it('are not found by a condition that an object or its document has to pass', async () => {
    const mixed = { bool: { should: [ofObject, ofDocument] } };
    await expect(made({ knn: { ...ASKED, filter: mixed } }, IN_OBJECTS)).rejects.toMatchObject({
      reason: expect.stringContaining('about these or about their documents') as string,
    });
  });

  it('are not compared one by one in a field that others made, but found nowhere in one that is not there', async () => {
    const filter = { nested: { path: 'o', query: { match_all: {} } } };
    const body = { query: { nested: { path: 'o', query: { knn: { ...ASKED, field: 'o.foreign', filter } } } } };
    await expect(made(body)).rejects.toMatchObject({
      status: 400,
      reason: expect.stringContaining('[o.foreign], which was not mapped by Sparrow') as string,
    });
    const nowhere = JSON.parse(JSON.stringify(body).replace('o.foreign', 'o.nowhere')) as object;
    expect((await made(nowhere)).asked[0].query).toEqual({ match_none: {} });
  });

  it('have twice the least score where an OpenSearch before 2.19 compares objects by their cosines', async () => {
    const knn = { ...ASKED, filter: [ofDocument, ofObject], similarity: 0.5 };
    const least = async (version: string, field = IN_OBJECTS): Promise<unknown> =>
      (await made({ knn }, field, { ...OPENSEARCH, version })).asked[0].min_score;
    expect(await least('2.18.0')).toBe(1.5);
    expect(await least('2.19.1')).toBe(0.75);
    expect(await least('3.0.0')).toBe(0.75);
    expect(await least('2.18.0', { ...IN_OBJECTS, similarity: 'l2_norm' })).toBe(0.8);
  });

  it('stand where they stood, with their boosts and names', async () => {
    const text = { text_embedding: { model_id: 'm', model_text: 'x' } };
    const clause = { knn: { field: 'v', query_vector_builder: text, boost: 2, _name: 'n' } };
    const { sent } = await made({ query: { bool: { must: [{ match: { a: 'b' } }, clause] } }, knn: [ASKED, ASKED] });
    const named = { bool: { must: [found([0, 1])], boost: 2, _name: 'n' } };
    const query = { bool: { must: [{ match: { a: 'b' } }, named] } };
    expect(sent).toEqual({ query: { bool: { should: [query, found(), found()] } } });
  });

  it('have the scores of the native engine', async () => {
    const bit = (await made({ knn: { field: 'v', query_vector: [1, 0] } }, dense({ element_type: 'bit', dims: 16 })))
      .sent;
    expect(bit.query.script_score).toMatchObject({ script: { params: { dims: 16 } }, query: found() });
    const byte = (await made({ knn: ASKED }, dense({ element_type: 'byte', similarity: 'dot_product' }))).sent;
    expect(byte.query.script_score.script.source).toContain('32768.0');
  });

  it.each([
    [{ knn: { field: 'v', query_vector: [1] } }, 'a different number of dimensions [1] than the document vectors [2]'],
    [{ knn: { field: 'v', query_vector: [0, 0] } }, 'zero magnitude'],
    [{ knn: { ...ASKED, inner_hits: {} } }, '[inner_hits] of [knn]'],
    [{ knn: { ...ASKED, k: 0 } }, '[k] must be greater than 0'],
    [{ knn: { ...ASKED, num_candidates: 10_001 } }, '[num_candidates] cannot exceed [10000]'],
  ])('are refused by %j', async (body, words) => {
    await expect(made(body)).rejects.toMatchObject({ status: 400, reason: expect.stringContaining(words) as string });
  });

  it('are those of Elasticsearch there, but for texts', async () => {
    const text = { text_embedding: { model_id: 'm', model_text: 'x' } };
    const more = { inner_hits: {}, filter: { term: { k: 1 } } };
    const body = { knn: { field: 'v', query_vector_builder: text, ...more }, size: 1 };
    const { asked, sent } = await made(body, dense(), ELASTICSEARCH);
    expect(asked).toEqual([]);
    expect(sent).toEqual({ knn: { field: 'v', query_vector: [0, 1], ...more }, size: 1 });
    const knn = { ...ASKED, k: 3, num_candidates: 9, rescore_vector: { oversample: 2 } };
    const retriever = await made({ retriever: { knn } }, dense(), ELASTICSEARCH);
    expect(retriever.sent).toEqual({ knn });
  });
});

describe('a script that compares vectors, in OpenSearch', () => {
  const translated = (source: string, params: object = { q: [1, 2], w: 3 }, product = OPENSEARCH): any => {
    const script_score = { query: { term: { k: 1 } }, script: { source, params }, min_score: 1 };
    const body = new SearchBody(JSON.stringify({ query: { script_score } }), {
      product,
      restricted: false,
    });
    body.resolve({ tokens: () => ({}), vector: () => [], isBlank: () => false });
    return (JSON.parse(body.translated()) as any).query.script_score;
  };

  it.each([
    ["cosineSimilarity(params.q, 'v') + 1.0", 'cosinesimil', '(2.0 * _score - 1.0) + 1.0'],
    ['params.w * l2norm(params["q"], "v")', 'l2', 'params.w * Math.sqrt(1.0 / _score - 1.0)'],
    ["l1norm([1,2], 'v')", 'l1', '(1.0 / _score - 1.0)'],
  ])('lets its own script compare: %s', (source, space, around) => {
    const { query, script, min_score: least } = translated(source);
    expect(query.script_score).toEqual({
      query: { term: { k: 1 } },
      script: { lang: 'knn', source: 'knn_score', params: { field: 'v', query_value: [1, 2], space_type: space } },
    });
    expect(script.source).toBe(around);
    expect(script.params['w']).toBe(3);
    expect(least).toBe(1);
  });

  it('takes a cosine from the score that OpenSearch before 2.19 gives', () => {
    const { script } = translated("cosineSimilarity(params.q, 'v')", { q: [1] }, { ...OPENSEARCH, version: '2.18.0' });
    expect(script.source).toBe('(_score - 1.0)');
  });

  it('is left as it is where it compares none, and refused where it needs more than one score', () => {
    expect(translated('_score * 2').script.source).toBe('_score * 2');
    const two = "dotProduct(params.q, 'v') + dotProduct(params.q, 'u')";
    expect(reasonOf(() => translated(two))).toContain('compares more than one vector');
    expect(reasonOf(() => translated("_score + dotProduct(params.q, 'v')"))).toContain('uses [_score]');
  });
});

describe('a filter of neighbours', () => {
  it.each([
    [{ bool: { must: [{ nested: { path: 'a', query: {} } }] } }, true],
    [{ function_score: { functions: [{ filter: { nested: {} }, weight: 2 }] } }, true],
    [{ term: { kind: 'nested' } }, false],
    [{ bool: { filter: { term: { nested: 1 } } } }, false],
  ])('%j is about nested objects: %s', (query, isNested) => {
    expect(hasNested(query)).toBe(isNested);
  });
});
