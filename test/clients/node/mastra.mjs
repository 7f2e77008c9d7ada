// Mastra's vector store for Elasticsearch, unchanged.
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';

import { ElasticSearchVector } from '@mastra/elasticsearch';

const { SPARROW_URL: url, SPARROW_API_KEY: apiKey } = process.env;
const store = new ElasticSearchVector({ id: 'sparrow', url, auth: { apiKey } });
const indexName = 'mastra_vectors';
const found = async (queryVector, more = {}) =>
  (await store.query({ indexName, queryVector, topK: 10, ...more })).map(({ id, metadata }) => [id, metadata]);

describe('Mastra’s store', () => {
  before(async () => {
    await store.createIndex({ indexName, dimension: 3, metric: 'cosine' });
    await store.upsert({
      indexName,
      ids: ['a', 'b', 'c'],
      vectors: [
        [1, 0, 0],
        [0, 1, 0],
        [0.9, 0.1, 0],
      ],
      metadata: [
        { text: 'one', n: 1, tags: ['x'] },
        { text: 'two', n: 2 },
        { text: 'three', n: 3, tags: ['x', 'y'] },
      ],
    });
  });

  it('lists and describes indices', async () => {
    assert.ok((await store.listIndexes()).includes(indexName));
    const { dimension, count, metric } = await store.describeIndex({ indexName });
    assert.deepEqual([dimension, count, metric], [3, 3, 'cosine']);
    // One that is there already is none too many.
    await store.createIndex({ indexName, dimension: 3, metric: 'cosine' });
  });

  it('finds the nearest, with filters', async () => {
    assert.deepEqual(
      (await found([1, 0, 0])).map(([id]) => id),
      ['a', 'c', 'b'],
    );
    for (const [filter, ids] of [
      [{ text: 'two' }, ['b']],
      [{ n: { $gt: 1 } }, ['c', 'b']],
      [{ $or: [{ text: 'one' }, { n: { $gte: 3 } }] }, ['a', 'c']],
      [{ text: { $in: ['one', 'two'] } }, ['a', 'b']],
      [{ tags: { $exists: false } }, ['b']],
    ]) {
      assert.deepEqual([filter, (await found([1, 0, 0], { filter })).map(([id]) => id)], [filter, ids]);
    }
  });

  it('updates and deletes, by id and by filter', async () => {
    await store.updateVector({ indexName, id: 'b', update: { vector: [0, 0, 1], metadata: { text: 'TWO', n: 2 } } });
    assert.deepEqual((await found([0, 0, 1]))[0], ['b', { text: 'TWO', n: 2 }]);
    await store.updateVector({ indexName, filter: { n: 3 }, update: { metadata: { text: 'THREE', n: 33 } } });
    assert.deepEqual(await found([1, 0, 0], { filter: { n: 33 } }), [['c', { text: 'THREE', n: 33 }]]);
    await store.deleteVector({ indexName, id: 'a' });
    await store.deleteVectors({ indexName, filter: { n: 33 } });
    assert.deepEqual(
      (await found([1, 0, 0])).map(([id]) => id),
      ['b'],
    );
    await store.deleteIndex({ indexName });
    assert.ok(!(await store.listIndexes()).includes(indexName));
  });
});
