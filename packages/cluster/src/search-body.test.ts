import { describe, expect, it } from 'vitest';

import type { Product } from './product.js';
import { SearchBody } from './search-body.js';

const PLUGIN: Product = {
  name: 'OpenSearch',
  version: '2.19.1',
  major: 2,
  neuralSparse: true,
  knn: true,
  vectorEngine: 'lucene',
};
const PLAIN: Product = {
  ...PLUGIN,
  version: '3.8.0',
  major: 3,
  neuralSparse: false,
  knn: false,
  vectorEngine: 'lucene',
};
const ELASTICSEARCH: Product = {
  name: 'Elasticsearch',
  version: '8.19.0',
  major: 8,
  neuralSparse: false,
  knn: false,
  vectorEngine: 'lucene',
};

const EXPANSION = { text_expansion: { tokens: { model_id: 'm', model_text: 'open spaces', boost: 2 } } };
const TOKENS = { fear: 1.5, open: 0.5 };
const VECTOR = [0.5, -1];

function read(body: unknown, product = PLUGIN, restricted = false): SearchBody {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const found = new SearchBody(text, { product, restricted });
  found.resolve({ tokens: () => TOKENS, vector: () => VECTOR, isBlank: () => false });
  found.near.forEach((near, at) => (near.text = `{"term":{"neighbours":${String(at)}}}`));
  return found;
}

function refused(body: unknown, product = PLUGIN, restricted = false): string {
  try {
    read(body, product, restricted);
  } catch (error) {
    return (error as { reason: string }).reason;
  }
  return '';
}

describe('a sparse clause for a cluster', () => {
  it.each([
    [PLUGIN, { bool: { should: [{ neural_sparse: { tokens: { query_tokens: TOKENS } } }], boost: 2 } }],
    [
      PLAIN,
      {
        bool: {
          should: [
            { rank_feature: { field: 'tokens.fear', linear: {}, boost: 1.5 } },
            { rank_feature: { field: 'tokens.open', linear: {}, boost: 0.5 } },
          ],
          boost: 2,
        },
      },
    ],
    [ELASTICSEARCH, { sparse_vector: { field: 'tokens', query_vector: TOKENS, prune: false, boost: 2 } }],
  ])('is the dot product there: $version', (product, query) => {
    const body = read({ query: EXPANSION, size: 3 }, product);
    expect(body.texts).toEqual([{ id: 'm', text: 'open spaces', wants: 'tokens' }]);
    expect(JSON.parse(body.translated())).toEqual({ query, size: 3 });
  });

  it('is found wherever a query can stand, and all else stays as it is written', () => {
    const places = [
      {
        query: {
          bool: {
            must: EXPANSION,
            should: [{ match: { a: 'b' } }, EXPANSION],
            filter: [{ bool: { must_not: [EXPANSION] } }],
          },
        },
      },
      { query: { function_score: { query: EXPANSION, functions: [{ filter: EXPANSION, weight: 2 }] } } },
      { query: { constant_score: { filter: EXPANSION } }, post_filter: { dis_max: { queries: [EXPANSION] } } },
      { query: { match_all: {} }, rescore: { query: { rescore_query: EXPANSION } } },
      { query: { match_all: {} }, rescore: [{ window_size: 9, query: { rescore_query: EXPANSION } }] },
      { highlight: { highlight_query: EXPANSION, fields: { a: { highlight_query: EXPANSION } } } },
      { aggs: { a: { filter: EXPANSION, aggs: { b: { filters: { filters: { c: EXPANSION, d: EXPANSION } } } } } } },
      { query: { nested: { path: 'p', query: { boosting: { positive: EXPANSION, negative: EXPANSION } } } } },
    ];
    for (const place of places) {
      const body = read(place);
      const clauses = JSON.stringify(place).split('text_expansion').length - 1;
      expect(body.texts).toHaveLength(clauses);
      expect(body.translated().split('neural_sparse')).toHaveLength(clauses + 1);
      expect(body.translated()).not.toContain('text_expansion');
    }
    const text = `{"size" :1, "query":{"bool":{"filter":{"term":{"n": 9007199254740993}},"must":${JSON.stringify(EXPANSION)}}}}`;
    expect(read(text).translated()).toContain(
      '{"size" :1, "query":{"bool":{"filter":{"term":{"n": 9007199254740993}},"must":{"bool"',
    );
  });

  it('is highlighted up to the same character by both products, each by its name for it', () => {
    const text =
      '{"highlight": {"max_analyzed_offset":9, "fields":{"a":{"max_analyzed_offset" : 8},"max_analyzed_offset":{}}}}';
    expect(read(text, PLUGIN).translated()).toBe(
      '{"highlight": {"max_analyzer_offset":9, "fields":{"a":{"max_analyzer_offset" : 8},"max_analyzed_offset":{}}}}',
    );
    expect(read(text, ELASTICSEARCH).translated()).toBe(text);
  });

  it('is not looked for in values that only look like one', () => {
    const body = { query: { term: { text_expansion: 'x' } } };
    expect(read(body).translated()).toBe(JSON.stringify(body));
  });

  it('prunes by frequencies of tokens in Elasticsearch only, which has them', () => {
    const config = { tokens_freq_ratio_threshold: 2 };
    for (const query of [
      { sparse_vector: { field: 'tokens', query_vector: { a: 1 }, prune: true, pruning_config: config } },
      { weighted_tokens: { tokens: { tokens: { a: 1 }, pruning_config: config } } },
    ]) {
      expect(JSON.parse(read({ query }, ELASTICSEARCH).translated()).query).toEqual({
        sparse_vector: { field: 'tokens', query_vector: { a: 1 }, prune: true, pruning_config: config },
      });
    }
  });

  it('takes tokens, and an inference endpoint', () => {
    const given = { sparse_vector: { field: 'tokens', query_vector: { a: 1 } } };
    expect(read({ query: given }).translated()).toContain('"query_tokens":{"a":1}');
    expect(read({ query: { weighted_tokens: { tokens: { tokens: { a: 1 } } } } }).translated()).toContain('{"a":1}');
    const text = { sparse_vector: { field: 'tokens', inference_id: 'e', query: 'q' } };
    expect(read({ query: text }).texts).toEqual([{ id: 'e', text: 'q', wants: 'tokens' }]);
  });

  it.each([
    [{ text_expansion: {} }, '[text_expansion] requires fieldName'],
    [{ text_expansion: { f: { model_text: 'x' } } }, '[text_expansion] requires a model_id value'],
    [{ text_expansion: { f: { model_id: 'x' } } }, 'No text specified for text query'],
    [
      { text_expansion: { f: { model_id: 'x', model_text: 'y', nope: 1 } } },
      '[text_expansion] query does not support [nope]',
    ],
    [{ text_expansion: { f: { model_id: 'x', model_text: 'y', pruning_config: {} } } }, '[pruning_config]'],
    [{ sparse_vector: { field: 'f', query_vector: { a: -1 } } }, 'weights must be positive numbers'],
    [{ semantic: { field: 'f', query: 'x' } }, 'Field [f] does not support semantic queries'],
  ])('refuses %j', (query, sentence) => {
    expect(refused({ query })).toContain(sentence);
  });
});

describe('lists to fuse', () => {
  it('come from sub_searches and rank', () => {
    const { fusion } = read({
      sub_searches: [{ query: { match: { a: 'b' } } }, { query: EXPANSION }],
      rank: { rrf: {} },
    });
    expect(fusion).toMatchObject({
      form: 'rank',
      method: { kind: 'rrf', rankConstant: 60 },
      window: { size: 100, given: false },
    });
    expect(fusion?.inputs).toHaveLength(2);
  });

  it('come from retrievers, with filters in each list', () => {
    const body = read({
      retriever: {
        rrf: {
          filter: { term: { k: 1 } },
          retrievers: [
            { standard: { query: EXPANSION } },
            {
              linear: {
                retrievers: [
                  { retriever: { standard: { query: { match_all: {} } } }, weight: 2, normalizer: 'minmax' },
                ],
              },
            },
          ],
        },
      },
    });
    expect(body.fusion?.inputs[1]?.node).toMatchObject({
      kind: 'fused',
      inputs: [{ weight: 2, normalizer: 'minmax' }],
    });
    const leaf = body.fusion?.inputs[0]?.node;
    expect(leaf?.kind === 'leaf' ? body.leafQuery(leaf) : '').toContain('"filter":[{"term":{"k":1}}]');
  });

  it('are one for a lone standard retriever, which stands for sections', () => {
    const body = read({
      size: 1,
      retriever: { standard: { query: EXPANSION, filter: [{ term: { k: 1 } }], min_score: 2, sort: ['n'] } },
    });
    expect(body.fusion).toBeUndefined();
    expect(JSON.parse(body.translated())).toMatchObject({
      size: 1,
      min_score: 2,
      sort: ['n'],
      query: { bool: { filter: [{ term: { k: 1 } }] } },
    });
  });

  it.each([
    [{ sub_searches: [{ query: { match_all: {} } }] }, '[sub_searches] requires [rank]'],
    [{ query: { match_all: {} }, rank: { rrf: {} } }, '[rank] requires a minimum of [2] result sets'],
    [{ retriever: { rule: {} } }, 'retriever [rule] is not available over a cluster'],
    [{ retriever: { knn: {} } }, 'Required [field]'],
    [{ retriever: { rrf: { retrievers: [], rank_window_size: 0 } } }, '[rank_window_size] must be greater'],
    [{ query: {}, retriever: { standard: {} } }, 'cannot specify [retriever] and [query]'],
    [
      { sub_searches: [{ query: {} }, { query: {} }], rank: { rrf: {} }, collapse: { field: 'a' } },
      '[collapse] of a search that fuses lists',
    ],
    [{ knn: { field: 'a' } }, 'either [query_vector_builder] or [query_vector] must be provided'],
    [{ retriever: { rrf: { fields: ['a'] } } }, '[query] must be provided when [fields] is specified'],
    [
      {
        retriever: {
          linear: {
            retrievers: ['calibrated', 'none'].map((normalizer) => ({
              normalizer,
              retriever: { standard: { query: { match_all: {} } } },
            })),
          },
        },
      },
      'must be that of all [retrievers] or of none',
    ],
  ])('refuses %j', (body, sentence) => {
    expect(refused(body)).toContain(sentence);
  });
});

describe('a search of a key that may use some indices only', () => {
  const places = (query: object): object[] => [
    { query },
    { query: { bool: { must_not: [{ match_all: {} }], filter: { bool: { should: [query] } } } } },
    { sort: [{ a: { nested: { path: 'p', filter: query } } }] },
    { aggs: { a: { random_sampler: { probability: 0.5, query } } } },
    { rescore: { query: { rescore_query: query } } },
    { highlight: { highlight_query: query } },
    { suggest: { s: { phrase: { direct_generator: [query] } } } },
  ];

  it.each([
    { terms: { a: { index: 'secret', id: '1', path: 'p' } } },
    { more_like_this: { like: [{ _index: 'secret', _id: '1' }] } },
    { more_like_this: { unlike: [{ _index: 'secret', _id: '1' }] } },
    { bool: { filter: [{ terms: { a: { index: 'secret', id: '1', path: 'p' } } }] } },
  ])('names the index that is read by %j, wherever it stands', (query) => {
    for (const place of places(query)) {
      expect([...new SearchBody(JSON.stringify(place), { product: PLUGIN, restricted: true }).foreign]).toEqual([
        'secret',
      ]);
      expect(refused(place, PLUGIN, false)).toBe('');
    }
  });

  it.each([
    { terms: { a: { index: 'secret', path: 'p', query: { match_all: {} } } } },
    { terms: { a: { index: ['secret'], id: '1', path: 'p' } } },
    { more_like_this: { like: [{ _index: 12, _id: '1' }] } },
    { geo_shape: { a: { indexed_shape: { id: '1' } } } },
    { geo_shape: { a: { indexed_shape: { index: 'secret', id: '1' } } } },
    { percolate: { field: 'q', document: {} } },
    { wrapper: { query: 'e30=' } },
    { template: { terms: {} } },
    { collate: { query: { source: '{}' } } },
  ])('cannot have %j, whose index cannot be told', (query) => {
    for (const place of places(query)) {
      expect(refused(place, PLUGIN, true)).toContain('for a key that may use some indices only');
      // Nobody's template is read before the cluster fills it in.
      expect(refused(place, PLUGIN, false)).toBe(
        'collate' in query ? '[collate] of a suggester is not available over a cluster' : '',
      );
    }
  });

  it.each(['significant_terms', 'significant_text'])(
    'cannot compare values with those of hidden documents by %s',
    (kind) => {
      const aggs = { a: { terms: { field: 'a' }, aggs: { s: { [kind]: { field: 'a' } } } } };
      expect(refused({ aggs }, PLUGIN, true)).toContain(
        `aggregation [${kind}], for a key that may use some indices only`,
      );
      expect(refused({ aggs }, PLUGIN, false)).toBe('');
      expect(refused({ aggs: { [kind]: { terms: { field: 'a' } } } }, PLUGIN, true)).toBe('');
    },
  );

  it.each([0, '0'])('cannot list values that only hidden documents have, with a min_doc_count of %j', (least) => {
    const listed = (min_doc_count: unknown): object => ({ aggs: { a: { terms: { field: 'a', min_doc_count } } } });
    expect(refused(listed(least), PLUGIN, true)).toContain('[min_doc_count] 0 of the aggregation [terms]');
    expect(refused(listed(least), PLUGIN, false)).toBe('');
    expect(refused(listed(1), PLUGIN, true)).toBe('');
    // The query of this name.
    expect(refused({ query: { terms: { min_doc_count: [0] } } }, PLUGIN, true)).toBe('');
  });

  it('has no section that is not known to stay with what is searched', () => {
    expect(refused({ search_pipeline: {} }, PLUGIN, true)).toContain('[search_pipeline] of a search');
    expect(refused({ ext: {} }, PLUGIN, true)).toContain('[ext] of a search');
  });
});

describe('a large search', () => {
  const many = (count: number, clause: object): object => ({ query: { bool: { should: Array(count).fill(clause) } } });

  it('has at most as many clauses as the native engine allows', () => {
    const sparse = { sparse_vector: { field: 'tokens', query_vector: { cat: 1 } } };
    expect(
      read(many(16_000, sparse))
        .translated()
        .match(/neural_sparse/gu),
    ).toHaveLength(16_000);
    expect(refused(many(16_384, sparse))).toBe('more than 16384 clauses');
  });

  it('looks for neighbours at most 1,024 times', () => {
    const knn = { knn: { field: 'vector', k: 1, num_candidates: 1, query_vector: VECTOR } };
    expect(read(many(1024, knn)).near).toHaveLength(1024);
    expect(refused(many(1025, knn))).toBe(
      'a search with more than [1024] queries by meaning is not available over a cluster',
    );
  });

  it('has retrievers with at most as many filters as a query has clauses, and reads no lists behind the first 1,000', () => {
    const lists = (count: number, more: object = {}): object => {
      const retrievers = Array(count).fill({ standard: { query: { match_all: {} } } });
      return { retriever: { rrf: { retrievers, ...more } } };
    };
    const filter = Array(16_385).fill({ term: { a: 1 } });
    expect(refused(lists(2, { filter }))).toContain('a retriever takes at most [16384] filters');
    expect(refused(lists(150))).toContain('at most [100] result sets, but was [150]');
    expect(refused(lists(5000))).toContain('at most [100] result sets, but was [1001]');
  });

  it('is refused before it is read, with more values than a body may have', () => {
    const body = { query: { terms: { a: Array(500_000).fill(1) } } };
    expect(refused(body)).toMatch(/^the body has \[50000\d\] values, at most \[500000\] are possible on this server$/u);
    // Commas in a string are no values.
    expect(refused({ query: { match: { a: ','.repeat(600_000) } } })).toBe('');
  });
});
