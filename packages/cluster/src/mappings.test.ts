import { describe, expect, it } from 'vitest';

import { type Administration, putMapping } from './indices.js';
import { fromCluster, toCluster } from './mappings.js';
import type { Product } from './product.js';
import type { Asked } from './transport.js';

const OPENSEARCH: Product = {
  name: 'OpenSearch',
  version: '2.19.1',
  major: 2,
  neuralSparse: true,
  knn: true,
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

const PUT = {
  _source: { excludes: ['tokens'] },
  properties: {
    tokens: { type: 'sparse_vector' },
    content: { type: 'text', fields: { sparse: { type: 'sparse_vector' } } },
    inner: { properties: { tokens: { type: 'sparse_vector' } } },
    features: { type: 'rank_features' },
  },
};

const SEMANTIC = { type: 'semantic_text', inference_id: 'e' };
const HYBRID = {
  ...SEMANTIC,
  model_settings: { task_type: 'hybrid_embedding', dimensions: 3, similarity: 'dot_product', element_type: 'float' },
};

describe('a mapping for a cluster', () => {
  it.each([
    [OPENSEARCH, { type: 'rank_features' }, { type: 'knn_vector', dimension: 3 }],
    [ELASTICSEARCH, { type: 'sparse_vector' }, { type: 'dense_vector', dims: 3, similarity: 'dot_product' }],
  ])('has nested passages beside semantic_text, which are never shown', (product, tokens, vector) => {
    const put = {
      _source: { excludes: ['secret'] },
      properties: {
        new: SEMANTIC,
        inner: { properties: { both: HYBRID } },
        title: { type: 'text', fields: { meaning: SEMANTIC } },
      },
    };
    const sent = toCluster(put, product) as typeof put;
    expect(sent).toMatchObject({
      _source: { excludes: ['secret', '_sparrow'] },
      properties: {
        new: { type: 'text', index: false },
        title: { fields: { meaning: { type: 'text', index: false } } },
        _sparrow: {
          dynamic: 'strict',
          properties: {
            payload: { type: 'binary', store: true },
            fields: {
              properties: { inner: { properties: { both: { type: 'nested', properties: { tokens, vector } } } } },
            },
          },
        },
      },
    });
    expect(fromCluster(sent)).toEqual(put);
    // Where no document has a passage yet, nothing is known of the vectors.
    const { properties } = toCluster({ properties: { new: SEMANTIC } }, product) as {
      properties: { _sparrow: unknown };
    };
    expect(properties._sparrow).toMatchObject({ properties: { fields: { properties: {} } } });
  });

  it('takes no semantic_text later in an index that was made without one', () => {
    const later = { properties: { late: SEMANTIC } };
    expect(() => toCluster(later, OPENSEARCH, { properties: {} })).toThrow(
      expect.objectContaining({ reason: expect.stringContaining('made without one') as string }),
    );
    const before = toCluster({ properties: { first: SEMANTIC } }, OPENSEARCH);
    const added = toCluster(later, OPENSEARCH, before);
    expect(added).not.toHaveProperty('_source');
    expect(added).toMatchObject({ _meta: { sparrow: { fields: { first: SEMANTIC, late: SEMANTIC } } } });
  });

  it('has rank_features for sparse_vector on OpenSearch, and is shown as it was put', () => {
    const sent = toCluster(PUT, OPENSEARCH);
    expect(sent).toMatchObject({
      properties: {
        tokens: { type: 'rank_features' },
        content: { type: 'text', fields: { sparse: { type: 'rank_features' } } },
        inner: { properties: { tokens: { type: 'rank_features' } } },
      },
    });
    expect(fromCluster(sent)).toEqual(PUT);
  });

  it('tells features that were put from those that came by a template, also when that is replaced', () => {
    const byTemplate = [{ t: { match: 't_*', mapping: { type: 'sparse_vector' } } }];
    const put = { dynamic_templates: byTemplate, properties: { features: { type: 'rank_features' } } };
    const sent = toCluster(put, OPENSEARCH) as typeof put;
    expect(sent.dynamic_templates).toEqual([{ t: { match: 't_*', mapping: { type: 'rank_features' } } }]);
    const come = { ...sent.properties, t_1: { type: 'rank_features' } };
    const shown = { ...put.properties, t_1: { type: 'sparse_vector' } };
    expect(fromCluster({ ...sent, properties: come })).toEqual({ ...put, properties: shown });
    const other = { dynamic_templates: [{ other: { match: 'x_*', mapping: { type: 'keyword' } } }] };
    const replaced = toCluster(other, OPENSEARCH, sent) as typeof other;
    expect(fromCluster({ ...replaced, properties: come })).toEqual({ ...other, properties: shown });
  });

  it('has no templates in the cluster whose fields it makes itself, and shows them', () => {
    const [dense, text] = [
      { d: { match: 'v_*', mapping: { type: 'dense_vector' } } },
      { s: { match: 's_*', mapping: SEMANTIC } },
    ];
    const plain = { k: { match: 'k_*', mapping: { type: 'keyword' } } };
    const put = { dynamic_templates: [dense, plain, text], properties: { a: { type: 'keyword' } } };
    const sent = toCluster(put, OPENSEARCH) as typeof put;
    expect(sent.dynamic_templates).toEqual([plain]);
    expect(fromCluster(sent)).toEqual(put);
    expect(sent).toMatchObject({ _source: { excludes: ['_sparrow'] } });
    const elsewhere = toCluster(put, ELASTICSEARCH) as typeof put;
    expect(elsewhere.dynamic_templates).toEqual([dense, plain]);
    const before = { properties: { a: { type: 'keyword' } } };
    const late = (): unknown => toCluster({ dynamic_templates: [text] }, OPENSEARCH, before);
    expect(late).toThrow(expect.objectContaining({ reason: expect.stringContaining('was made without') as string }));
  });

  it('keeps options of sparse fields that change nothing', () => {
    const put = { properties: { a: { type: 'sparse_vector', store: true, index_options: { prune: false } } } };
    const sent = toCluster(put, OPENSEARCH) as { properties: object };
    expect(sent.properties).toEqual({ a: { type: 'rank_features' } });
    expect(fromCluster(sent)).toEqual(put);
  });

  it('is left as it is on Elasticsearch, and without sparse fields', () => {
    expect(toCluster(PUT, ELASTICSEARCH)).toEqual(PUT);
    const plain = { properties: { a: { type: 'text' } }, _meta: { mine: 1 } };
    expect(toCluster(plain, OPENSEARCH)).toEqual(plain);
    expect(fromCluster(plain)).toEqual(plain);
  });

  it('keeps the _meta that a client put, and what was written down of fields before', () => {
    const first = toCluster({ ...PUT, _meta: { mine: 1 } }, OPENSEARCH);
    expect(fromCluster(first)).toEqual({ ...PUT, _meta: { mine: 1 } });
    const second = toCluster({ properties: { more: { type: 'sparse_vector' } } }, OPENSEARCH, first) as typeof PUT;
    const merged = { ...second, properties: { ...(first as typeof PUT).properties, ...second.properties } };
    expect(fromCluster(merged)).toEqual({
      properties: { ...PUT.properties, more: { type: 'sparse_vector' } },
      _meta: { mine: 1 },
    });
  });

  it.each([
    [{ properties: { a: { type: 'dense_vector' } } }, 'the dense_vector field [a] without [dims]'],
    [{ properties: { _sparrow: { type: 'keyword' } } }, 'a field cannot be called [_sparrow]'],
    [JSON.parse('{"properties":{"__proto__":{"type":"semantic_text"}}}'), 'cannot be called [__proto__]'],
    [
      JSON.parse('{"properties":{"a":{"properties":{"__proto__":{"type":"sparse_vector"}}}}}'),
      'cannot be called [__proto__]',
    ],
    [{ _source: { enabled: false }, properties: { a: SEMANTIC } }, '[semantic_text] needs [_source]'],
    [
      { properties: { a: { type: 'sparse_vector', index_options: { prune: true } } } },
      '[index_options] of the sparse_vector field [a]',
    ],
    [
      { _source: { enabled: false }, dynamic_templates: [{ t: { match: 'a', mapping: SEMANTIC } }] },
      '[semantic_text] needs [_source]',
    ],
    [{ _meta: { sparrow: {} }, properties: { a: { type: 'sparse_vector' } } }, '[_meta.sparrow]'],
  ])('refuses %j by name', (mapping, sentence) => {
    let reason = '';
    try {
      toCluster(mapping, OPENSEARCH);
    } catch (error) {
      ({ reason } = error as { reason: string });
    }
    expect(reason).toContain(sentence);
  });
});

describe('a mapping that is put into an index', () => {
  it('is translated also where only its dynamic templates have to be', async () => {
    const sent: Asked[] = [];
    const cluster = {
      transport: {
        ask: (asked: Asked) => {
          sent.push(asked);
          return Promise.resolve({ status: 200, body: Buffer.from('{}'), text: false });
        },
      },
      product: OPENSEARCH,
      names: { expression: () => Promise.resolve('i') },
      indices: { read: () => Promise.resolve([['i', {}]]), forget: () => undefined },
      semantic: {
        checked: (given: unknown) => Promise.resolve(given),
        turns: { alone: (_: string, work: () => unknown) => work() },
      },
    } as unknown as Administration;
    const templates = [{ t: { match: 't_*', mapping: { type: 'sparse_vector' } } }];
    const body = Buffer.from(JSON.stringify({ dynamic_templates: templates }));
    await putMapping(cluster, { op: 'put_mapping', path: { index: 'i' }, query: {} }, body);
    expect(JSON.parse(String(sent[0]?.body))).toMatchObject({
      dynamic_templates: [{ t: { mapping: { type: 'rank_features' } } }],
      _meta: { sparrow: { templates } },
    });
  });
});
