// LlamaIndex's vector store for Elasticsearch, unchanged, with the models that are in the server as its embeddings.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, it } from 'node:test';

import { Client } from '@elastic/elasticsearch';
import { BaseEmbedding } from '@llamaindex/core/embeddings';
import { Settings } from '@llamaindex/core/global';
import { TextNode } from '@llamaindex/core/schema';
import { ElasticSearchVectorStore } from '@llamaindex/elastic-search';

const { SPARROW_URL: esUrl, SPARROW_API_KEY: esApiKey, SPARROW_PASSAGES: passages } = process.env;
const indexName = 'llamaindex-ts';
const client = new Client({ node: esUrl, auth: { apiKey: esApiKey } });
after(async () => {
  await client.indices.delete({ index: indexName }, { ignore: [404] });
  await client.close();
});

async function embed(input) {
  const answer = await client.inference.inference({
    inference_id: '.all-minilm-l6-v2-elasticsearch',
    input,
    timeout: '60s',
  });
  return answer.text_embedding.map(({ embedding }) => embedding);
}

/** Embeddings that the server makes, by an inference endpoint. */
class ServerEmbedding extends BaseEmbedding {
  async getTextEmbedding(text) {
    const [vector] = await embed([text]);
    return vector;
  }
}
Settings.embedModel = new ServerEmbedding();

const PASSAGES = Object.entries(JSON.parse(readFileSync(passages, 'utf8')));
const store = new ElasticSearchVectorStore({ indexName, esUrl, esApiKey });
const found = async (question, more = {}) => {
  const queryEmbedding = await Settings.embedModel.getTextEmbedding(question);
  return store.query({ queryEmbedding, similarityTopK: 3, mode: 'default', ...more });
};

describe('LlamaIndex’s store', () => {
  it('writes nodes, finds the nearest, filters, and deletes by document', async () => {
    const vectors = await embed(PASSAGES.map(([, text]) => text));
    const nodes = PASSAGES.map(
      ([key, text], number) =>
        new TextNode({
          id_: key,
          text,
          embedding: vectors[number],
          metadata: { key, even: number % 2 === 0 },
          relationships: { SOURCE: { nodeId: `doc-${key}`, metadata: {} } },
        }),
    );
    assert.deepEqual(
      await store.add(nodes),
      PASSAGES.map(([key]) => key),
    );
    const { nodes: near, ids, similarities } = await found('doctor for kids');
    assert.equal(ids[0], 'child');
    assert.equal(near[0].getText(), Object.fromEntries(PASSAGES).child);
    assert.deepEqual([near[0].metadata.key, similarities[0], ids.length], ['child', 1, 3]);

    const filters = (...list) => ({ filters: { filters: list, condition: 'and' } });
    const bread = { key: 'key.keyword', value: 'bread', operator: '==' };
    assert.deepEqual((await found('doctor for kids', filters(bread))).ids, ['bread']);
    const both = filters(bread, { key: 'even', value: !nodes.find(({ id_ }) => id_ === 'bread').metadata.even });
    assert.deepEqual((await found('doctor for kids', both)).ids, []);

    await store.delete('doc-child');
    assert.ok(!(await found('doctor for kids', { similarityTopK: PASSAGES.length })).ids.includes('child'));
  });

  it('is told what is wrong', async () => {
    const short = new TextNode({ id_: 'short', text: 'x', embedding: [1, 2], metadata: {} });
    await assert.rejects(store.add([short]), /different number of dimensions/);
  });
});
