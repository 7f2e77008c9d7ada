// LangChain's Elasticsearch store for JavaScript, unchanged, with the models that are in the server as its embeddings.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, it } from 'node:test';

import { Client } from '@elastic/elasticsearch';
import { ElasticVectorSearch, HybridRetrievalStrategy } from '@langchain/community/vectorstores/elasticsearch';
import { Document } from '@langchain/core/documents';
import { Embeddings } from '@langchain/core/embeddings';

const { SPARROW_URL: node, SPARROW_API_KEY: apiKey, SPARROW_PASSAGES: passages } = process.env;
const client = new Client({ node, auth: { apiKey } });
after(() => client.close());

/** Embeddings that the server makes, by an inference endpoint. */
class ServerEmbeddings extends Embeddings {
  async embedDocuments(texts) {
    const answer = await client.inference.inference({
      inference_id: '.all-minilm-l6-v2-elasticsearch',
      input: texts,
      timeout: '60s',
    });
    return answer.text_embedding.map(({ embedding }) => embedding);
  }
  async embedQuery(text) {
    const [vector] = await this.embedDocuments([text]);
    return vector;
  }
}

const PASSAGES = JSON.parse(readFileSync(passages, 'utf8'));
const documents = Object.entries(PASSAGES).map(
  ([key, pageContent], number) => new Document({ pageContent, metadata: { key, number } }),
);
const embeddings = new ServerEmbeddings({});

const filled = (indexName, more = {}) =>
  ElasticVectorSearch.fromDocuments(documents, embeddings, { client, indexName, ...more });
const keys = (found) => found.map(({ metadata }) => metadata.key);

describe('ElasticVectorSearch', () => {
  it('finds by vectors, with scores, filters and ids', async () => {
    const store = await filled('lcjs-dense', { vectorSearchOptions: { similarity: 'cosine' } });
    assert.equal(keys(await store.similaritySearch('fear of open spaces', 2))[0], 'open');
    const [[best, score], [, second]] = await store.similaritySearchWithScore('doctor for kids', 2);
    assert.equal(best.metadata.key, 'child');
    assert.ok(score > second && score <= 1, `${score} ${second}`);
    assert.deepEqual(keys(await store.similaritySearch('doctor for kids', 3, { key: 'bread' })), ['bread']);
    const ranges = [
      { operator: 'range', field: 'number', value: { gte: 3 } },
      { operator: 'exclude', field: 'key', value: ['child'] },
    ];
    assert.deepEqual(keys(await store.similaritySearch('anything', 6, ranges)).sort(), ['bread', 'whale']);
    await store.addDocuments([new Document({ pageContent: 'hot lava', metadata: { key: 'lava' } })], { ids: ['lava'] });
    assert.equal(keys(await store.similaritySearch('volcano', 1))[0], 'lava');
    await store.delete({ ids: ['lava'] });
    assert.equal(await client.exists({ index: 'lcjs-dense', id: 'lava' }), false);
    const again = await ElasticVectorSearch.fromExistingIndex(embeddings, { client, indexName: 'lcjs-dense' });
    assert.equal(keys(await again.asRetriever(1).invoke('an animal of the sea'))[0], 'whale');
    await store.deleteIfExists();
    assert.equal(await store.doesIndexExist(), false);
  });

  it('fuses vectors and words by their ranks', async () => {
    const store = await filled('lcjs-hybrid', { strategy: new HybridRetrievalStrategy({ rankWindowSize: 20 }) });
    assert.equal(keys(await store.similaritySearch('baked dough', 1))[0], 'bread');
    assert.equal(keys(await store.similaritySearch('somebody with a stamp album', 1))[0], 'stamps');
    await store.deleteIfExists();
  });

  for (const similarity of ['cosine', 'l2_norm', 'dot_product']) {
    it(`takes the similarity ${similarity}`, async () => {
      const store = await filled(`lcjs-${similarity}`, {
        vectorSearchOptions: { similarity, m: 8, efConstruction: 64 },
      });
      assert.equal(keys(await store.similaritySearch('walk slowly', 1))[0], 'walk');
      await store.deleteIfExists();
    });
  }
});
