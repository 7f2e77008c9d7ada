// Vercel's AI SDK, unchanged, with its providers for OpenAI's and Cohere's interfaces, over the models that are in the server.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { createCohere } from '@ai-sdk/cohere';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { cosineSimilarity, embed, embedMany, rerank } from 'ai';

const { SPARROW_URL: url, SPARROW_API_KEY: apiKey } = process.env;
const sparrow = createOpenAICompatible({ name: 'sparrow', baseURL: `${url}/v1`, apiKey });
const model = sparrow.embeddingModel('.all-minilm-l6-v2');
const TEXTS = ['Bread rises because yeast makes gas.', 'The harbour freezes in winter.', 'A boat needs an anchor.'];

/** A request to the server in JSON. */
async function send(path, body) {
  const headers = { authorization: `ApiKey ${apiKey}`, 'content-type': 'application/json' };
  const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200);
  return response.json();
}

describe('the AI SDK', () => {
  // A small model with random weights.
  before(() => send('/_ml/trained_models/cross/deployment/_start'));
  after(() => send('/_ml/trained_models/cross/deployment/_stop'));

  it('makes embeddings by OpenAI’s interface, of which the nearest is the one that is meant', async () => {
    const { embeddings, usage } = await embedMany({ model, values: TEXTS, maxRetries: 0 });
    assert.deepEqual(
      embeddings.map((vector) => vector.length),
      [384, 384, 384],
    );
    assert.ok(usage.tokens > 0);
    const { embedding } = await embed({ model, value: 'How does dough get bigger?', maxRetries: 0 });
    const near = embeddings.map((vector) => cosineSimilarity(vector, embedding));
    assert.equal(near.indexOf(Math.max(...near)), 0);
  });

  it('ranks texts by Cohere’s interface', async () => {
    const cohere = createCohere({ baseURL: `${url}/v2`, apiKey });
    const query = 'How does dough get bigger?';
    const asked = { model: cohere.reranking('cross'), documents: TEXTS, query, topN: 2, maxRetries: 0 };
    const { ranking } = await rerank(asked);
    const { results } = await send('/v2/rerank', { model: 'cross', documents: TEXTS, query, top_n: 2 });
    assert.deepEqual(
      ranking.map(({ originalIndex, score, document }) => [originalIndex, score, document]),
      results.map(({ index, relevance_score: score }) => [index, score, TEXTS[index]]),
    );
    assert.equal(ranking.length, 2);
  });

  it('knows the errors', async () => {
    const gone = sparrow.embeddingModel('gone');
    await assert.rejects(embed({ model: gone, value: 'a', maxRetries: 0 }), (error) => {
      assert.equal(error.statusCode, 404);
      assert.match(error.message, /gone/);
      return true;
    });
  });
});
