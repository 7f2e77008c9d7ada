// OpenAI's client, unchanged, over the models that are in the server.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import OpenAI from 'openai-7';

const { SPARROW_URL: url, SPARROW_API_KEY: apiKey } = process.env;
const MODEL = '.all-minilm-l6-v2';
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });

/** What Elasticsearch's interface makes of texts. */
async function expectedOf(input) {
  const response = await fetch(`${url}/_inference/${MODEL}-elasticsearch`, {
    method: 'POST',
    headers: { authorization: `ApiKey ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input }),
  });
  return (await response.json()).text_embedding.map(({ embedding }) => embedding.map(Math.fround));
}

describe('OpenAI’s client', () => {
  it('makes embeddings, in base64 as it asks by itself, and in numbers', async () => {
    const input = ['Bread rises because yeast makes gas.', 'The harbour freezes in winter.'];
    const expected = await expectedOf(input);
    for (const format of [{}, { encoding_format: 'float' }]) {
      const { object, data, model, usage } = await client.embeddings.create({ model: MODEL, input, ...format });
      assert.deepEqual([object, model, typeof usage.total_tokens], ['list', MODEL, 'number']);
      assert.deepEqual(
        data.map(({ index, embedding }) => [index, embedding.map(Math.fround)]),
        expected.map((vector, index) => [index, vector]),
      );
    }
    const one = await client.embeddings.create({ model: MODEL, input: input[1] });
    assert.deepEqual(one.data[0].embedding, expected[1]);
  });

  it('lists models, and shows one', async () => {
    const ids = [];
    for await (const { id } of client.models.list()) ids.push(id);
    assert.deepEqual(ids, [`${MODEL}-elasticsearch`, MODEL, 'cross']);
    assert.equal((await client.models.retrieve(MODEL)).id, MODEL);
  });

  it('knows the errors', async () => {
    const of = (model, more = {}) => client.embeddings.create({ model, input: 'a', ...more });
    await assert.rejects(of('gone'), (error) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      assert.deepEqual([error.code, error.param, error.type], ['model_not_found', 'model', 'invalid_request_error']);
      return true;
    });
    await assert.rejects(of(MODEL, { dimensions: 100 }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, 'dimensions');
      return true;
    });
    await assert.rejects(
      new OpenAI({ baseURL: `${url}/v1`, apiKey: 'bad', maxRetries: 0 }).models.list(),
      OpenAI.AuthenticationError,
    );
  });
});
