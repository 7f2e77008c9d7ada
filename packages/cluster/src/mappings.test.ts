import { describe, expect, it } from 'vitest';

import { fromCluster, toCluster } from './mappings.js';
import type { Product } from './product.js';

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

describe('a mapping for a cluster', () => {
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

  it('is left as it is on Elasticsearch, and without sparse fields', () => {
    expect(toCluster(PUT, ELASTICSEARCH)).toEqual(PUT);
    const plain = { properties: { a: { type: 'text' } }, _meta: { mine: 1 } };
    expect(toCluster(plain, OPENSEARCH)).toEqual(plain);
    expect(fromCluster(plain)).toEqual(plain);
  });

  it('keeps the _meta of whoever put it, and what was written down of fields before', () => {
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
    [{ properties: { a: { properties: { b: { type: 'semantic_text' } } } } }, 'type [semantic_text] of field [a.b]'],
    [{ properties: { a: { type: 'sparse_vector', store: true } } }, '[store] of the sparse_vector field [a]'],
    [{ dynamic_templates: [{ t: { mapping: { type: 'sparse_vector' } } }] }, 'dynamic template [t]'],
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
