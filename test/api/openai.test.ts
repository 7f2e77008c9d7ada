// The interfaces of OpenAI, Cohere and Jina, over the embedded models and over small ones with random weights: the same vectors and scores
// as by Elasticsearch's interface, and every refusal in OpenAI's form.
import { cpSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type Answer, type RequestOptions, type RunningServer, startServer } from '../support/server.js';

interface Item {
  readonly index: number;
  readonly embedding: readonly number[] | string;
}

const FIXTURES = fileURLToPath(new URL('../../crates/encoder/tests/fixtures', import.meta.url));
const DENSE = '.all-minilm-l6-v2-elasticsearch';
const TEXTS = ['Bread rises because yeast makes gas.', 'The harbour freezes in winter.'];
const DOCUMENTS = ['old blue coin. new', 'green coin', 'red stamp', '', 'new new new blue', 'old green stamps. red'];
const QUERY = 'red stamps';

let server: RunningServer;
/** A key that may do nothing with models, and one that may only infer. */
let stranger: string;
let inferring: string;

const call = (method: string, path: string, body?: unknown, options?: RequestOptions): Promise<Answer> =>
  server.request(method, path, body, options);
const done = async (method: string, path: string, body?: unknown, options?: RequestOptions): Promise<any> => {
  const answer = await call(method, path, body, options);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};
const embed = async (body: object): Promise<readonly Item[]> =>
  (await done('POST', '/v1/embeddings', { model: DENSE, ...body })).data as Item[];
const ranked = async (body: object, path = '/v1/rerank'): Promise<any[]> =>
  (await done('POST', path, { model: 'cross', query: QUERY, documents: DOCUMENTS, ...body })).results as any[];
/** What Elasticsearch's interface makes of texts. */
const vectorsOf = async (id: string, input: readonly string[]): Promise<number[][]> =>
  (await done('POST', `/_inference/${id}`, { input })).text_embedding.map((one: any) => one.embedding);
const key = async (cluster: readonly string[]): Promise<string> =>
  (await done('POST', '/_security/api_key', { name: 'k', role_descriptors: { r: { cluster } } })).encoded;

/** Refusals as OpenAI's clients read them. */
async function refused(
  path: string,
  body: unknown,
  [status, param, message]: readonly [status: number, param: string | null, message: string],
  options?: RequestOptions,
): Promise<Answer> {
  const answer = await call('POST', path, body, options);
  expect(answer.status, answer.text).toBe(status);
  expect(Object.keys(answer.body)).toEqual(['error']);
  expect(answer.body.error).toEqual({
    message: expect.stringContaining(message),
    type: expect.any(String),
    param,
    code: answer.body.error.code === null ? null : expect.any(String),
  });
  return answer;
}

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sparrow-openai-'));
  cpSync(join(FIXTURES, 'cross-bert'), join(folder, 'cross'), { recursive: true });
  cpSync(join(FIXTURES, 'checkpoint-matryoshka'), join(folder, 'nested'), { recursive: true });
  server = await startServer({ args: ['--models', folder, '--deploy-at-start', 'false'] });
  // What a model was trained for is said where it is made a model.
  const location = { directory: 'nested' };
  await done('PUT', '/_ml/trained_models/cuttable', { location, metadata: { matryoshka_dimensions: [2, 4] } });
  for (const model of ['cross', 'nested', 'cuttable']) {
    await done('POST', `/_ml/trained_models/${model}/deployment/_start`);
  }
  [stranger, inferring] = [await key(['manage_ingest_pipelines']), await key(['monitor_inference'])];
});

afterAll(async () => {
  await server.stop();
});

describe('POST /v1/embeddings', () => {
  it('starts a model that is named where an endpoint uses it, and no other', async () => {
    const [item] = await embed({ model: '.all-minilm-l6-v2', input: TEXTS });
    expect(item?.embedding).toHaveLength(384);
    await done('POST', '/_ml/trained_models/nested/deployment/_stop');
    await refused('/v1/embeddings', { model: 'nested', input: 'a' }, [409, null, 'must be deployed to use']);
    await done('POST', '/_ml/trained_models/nested/deployment/_start');
  });

  it('makes the vectors of an inference endpoint, of one text or several', async () => {
    const expected = await vectorsOf(DENSE, TEXTS);
    const answer = await done('POST', '/v1/embeddings', { model: DENSE, input: TEXTS, user: 'me' });
    expect(answer).toEqual({
      object: 'list',
      data: expected.map((embedding, index) => ({ object: 'embedding', index, embedding })),
      model: DENSE,
      // [CLS] bread rises because yeast makes gas . [SEP], and [CLS] the harbour freeze ##s in winter . [SEP]
      usage: { prompt_tokens: 18, total_tokens: 18 },
    });
    expect(await embed({ input: TEXTS[1], encoding_format: 'float' })).toEqual([
      { object: 'embedding', index: 0, embedding: expected[1] },
    ]);
  });

  it('takes the id or an alias of a model, with and without an endpoint', async () => {
    const [expected] = await vectorsOf(DENSE, TEXTS);
    for (const model of ['.all-minilm-l6-v2', DENSE]) {
      expect((await embed({ model, input: TEXTS }))[0]?.embedding).toEqual(expected);
    }
    await done('PUT', '/_ml/trained_models/nested/model_aliases/by-alias');
    const docs = [{ text_field: 'red stamp' }];
    const { inference_results: direct } = await done('POST', '/_ml/trained_models/nested/_infer', { docs });
    for (const model of ['nested', 'by-alias']) {
      const [item] = await embed({ model, input: 'red stamp' });
      expect(item?.embedding).toEqual(direct[0].predicted_value);
    }
  });

  it('writes base64 of 32-bit numbers, the lowest byte first', async () => {
    const expected = await vectorsOf(DENSE, TEXTS);
    const items = await embed({ input: TEXTS, encoding_format: 'base64' });
    for (const { index, embedding } of items) {
      const bytes = Buffer.from(embedding as string, 'base64');
      const numbers = Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
      expect(numbers).toEqual(expected[index]?.map(Math.fround));
    }
  });

  it('cuts the vectors of a model that was trained for it, and only those', async () => {
    const whole = (await embed({ model: 'cuttable', input: 'red stamp' }))[0]?.embedding as number[];
    expect(whole).toHaveLength(8);
    expect((await embed({ model: 'cuttable', input: 'red stamp', dimensions: 8 }))[0]?.embedding).toEqual(whole);
    const short = (await embed({ model: 'cuttable', input: 'red stamp', dimensions: 4 }))[0]?.embedding as number[];
    expect(short).toHaveLength(4);
    const { metadata } = (await done('GET', '/_ml/trained_models/cuttable')).trained_model_configs[0];
    const length = metadata.recognised.normalized === true ? Math.hypot(...whole.slice(0, 4)) : 1;
    short.forEach((number, at) => {
      expect(number).toBeCloseTo((whole[at] ?? NaN) / length, 6);
    });
    const of = (model: string, dimensions: unknown): object => ({ model, input: 'a', dimensions });
    const lengths = 'dimensions: the model [cuttable] makes vectors of [2, 4, 8] numbers';
    await refused('/v1/embeddings', of('cuttable', 3), [400, 'dimensions', lengths]);
    await refused('/v1/embeddings', of('cuttable', 16), [400, 'dimensions', lengths]);
    const one = `the model [${DENSE}] makes vectors of [384] numbers`;
    await refused('/v1/embeddings', of(DENSE, 256), [400, 'dimensions', one]);
    expect((await embed(of(DENSE, 384)))[0]?.embedding).toHaveLength(384);
    for (const wrong of [0, -1, 1.5, '4']) {
      await refused('/v1/embeddings', of('cuttable', wrong), [400, 'dimensions', 'a whole number above 0']);
    }
  });

  it('encodes a thousand texts in their order, and no more than 2,048', async () => {
    const input = Array.from({ length: 1000 }, (_, n) => `text ${String(n)}`);
    const items = await embed({ input, encoding_format: 'base64' });
    expect(items.map(({ index }) => index)).toEqual(input.map((_, index) => index));
    for (const at of [0, 31, 32, 999]) {
      const [alone] = await embed({ input: input[at], encoding_format: 'base64' });
      expect(items[at]?.embedding).toBe(alone?.embedding);
    }
    const many = Array.from({ length: 2049 }, () => 'a');
    await refused('/v1/embeddings', { model: DENSE, input: many }, [400, 'input', 'at most [2048] are taken']);
  }, 60_000);

  it('reads the beginning of a long text, and refuses a body of more than 4 MiB', async () => {
    const [item] = await embed({ input: 'red '.repeat(700_000) });
    expect(item?.embedding).toHaveLength(384);
    // Zipped, all of it arrives: a client that is still sending might not read the answer.
    const bytes = gzipSync(JSON.stringify({ model: DENSE, input: 'red '.repeat(1_100_000) }));
    const headers = { 'content-encoding': 'gzip' };
    const answer = await refused('/v1/embeddings', bytes, [413, null, '4194304'], { headers });
    expect(answer.body.error.code).toBe('request_too_large');
  }, 30_000);

  it('refuses what it cannot read, and says where it is', async () => {
    const input = 'a';
    for (const [body, param, message] of [
      [{ input }, 'model', 'this parameter is required'],
      [{ model: 7, input }, 'model', 'a text is expected, not a number'],
      [{ model: '', input }, 'model', 'an empty text'],
      [{ model: DENSE }, 'input', 'this parameter is required'],
      [{ model: DENSE, input: null }, 'input', 'this parameter is required'],
      [{ model: DENSE, input: '' }, 'input', 'an empty text'],
      [{ model: DENSE, input: [] }, 'input', 'the list is empty'],
      [{ model: DENSE, input: ['a', ''] }, 'input[1]', 'an empty text'],
      [{ model: DENSE, input: ['a', null] }, 'input[1]', 'a text is expected, not null'],
      [{ model: DENSE, input: { text: 'a' } }, 'input', 'a text is expected, not an object'],
      [{ model: DENSE, input: [1, 2, 3] }, 'input', 'the numbers of tokens mean something else to each model'],
      [{ model: DENSE, input: [[1, 2], [3]] }, 'input', 'the numbers of tokens mean something else to each model'],
      [{ model: DENSE, input: '\ud800' }, 'input', 'a surrogate that is alone'],
      [{ model: DENSE, input, encoding_format: 'base32' }, 'encoding_format', 'one of [float, base64]'],
      [{ model: DENSE, input, encoding_format: 64 }, 'encoding_format', 'one of [float, base64]'],
      [{ model: DENSE, input, user: 1 }, 'user', 'a text is expected'],
      [{ model: DENSE, input, temperature: 1 }, 'temperature', 'there is no such parameter; there are [input, model'],
    ] as const) {
      const answer = await refused('/v1/embeddings', body, [400, param, message]);
      expect(answer.body.error.type).toBe('invalid_request_error');
    }
    const bytes = (text: string): Buffer => Buffer.from(text);
    await refused('/v1/embeddings', bytes('{"input":'), [400, null, 'the body is not JSON']);
    await refused('/v1/embeddings', bytes('[]'), [400, null, 'must be a JSON object']);
    await refused('/v1/embeddings', undefined, [400, null, 'request body is required']);
    const many = { model: DENSE, input: Array.from({ length: 30_000 }, () => ({})) };
    await refused('/v1/embeddings', many, [400, null, 'values, and at most [20000] are allowed']);
    const twice = bytes(`{"model":"${DENSE}","input":"a\\\\\\"","input" :"b"}`);
    await refused('/v1/embeddings', twice, [400, 'input', 'this member is there twice']);
    const deep = bytes(`{"model":"${DENSE}","input":${'['.repeat(9000)}${']'.repeat(9000)}}`);
    await refused('/v1/embeddings', deep, [400, null, 'nested deeper']);
  });

  it('refuses models that there are not, and those for something else, by name', async () => {
    const missing = await refused('/v1/embeddings', { model: 'gone', input: 'a' }, [404, 'model', `[${DENSE}`]);
    expect(missing.body.error).toMatchObject({ code: 'model_not_found', type: 'invalid_request_error' });
    for (const model of ['*', '_all', '.all*', `${DENSE},nested`, '__proto__']) {
      await refused('/v1/embeddings', { model, input: 'a' }, [404, 'model', 'does not exist']);
    }
    for (const [model, message] of [
      ['.elser-2-elasticsearch', 'makes sparse vectors, which this interface has no place for: use POST /_inference/'],
      ['.sparse_encoder_model_2', 'use POST /_ml/trained_models/.sparse_encoder_model_2/_infer'],
      ['.hybrid', 'makes a sparse and a dense vector of each text'],
      ['cross', 'scores texts for a question'],
    ] as const) {
      await refused('/v1/embeddings', { model, input: 'a' }, [400, 'model', message]);
    }
  });

  it('answers 429 with the time to come again when the queue is full', async () => {
    const settings = 'deployment_id=narrow&queue_capacity=1&cache_size=0b&wait_for=started';
    await done('POST', `/_ml/trained_models/.all-minilm-l6-v2/deployment/_start?${settings}`);
    const endpoint = { service: 'elasticsearch', service_settings: { deployment_id: 'narrow' } };
    await done('PUT', '/_inference/text_embedding/narrow-endpoint', endpoint);
    const body = { model: 'narrow-endpoint', input: TEXTS };
    const answer = await refused('/v1/embeddings', body, [429, null, 'queue is full']);
    expect(answer.body.error).toMatchObject({ type: 'rate_limit_error', code: 'rate_limit_exceeded' });
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    await done('DELETE', '/_inference/narrow-endpoint?force=true');
    await done('POST', '/_ml/trained_models/narrow/deployment/_stop?force=true');
  });

  it('waits as long as it is told', async () => {
    const input = Array.from({ length: 32 }, (_, n) => `${'long '.repeat(400)}${String(n)}`);
    await refused('/v1/embeddings?timeout=1ms', { model: DENSE, input }, [408, null, 'timeout [1ms]']);
  });
});

describe('keys', () => {
  it('need the privilege of inference, and are sent as OpenAI’s clients send them', async () => {
    const body = { model: DENSE, input: 'a' };
    for (const [path, sent] of [
      ['/v1/embeddings', body],
      ['/v1/rerank', { model: 'cross', query: 'a', documents: ['a'] }],
      ['/v2/rerank', { model: 'cross', query: 'a', documents: ['a'] }],
    ] as const) {
      const forbidden = await refused(path, sent, [403, null, 'monitor_inference'], { apiKey: stranger });
      expect(forbidden.body.error.code).toBe('insufficient_permissions');
      const unknown = await refused(path, sent, [401, null, 'missing authentication'], { apiKey: null });
      expect(unknown.body.error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_api_key' });
      expect(unknown.headers['www-authenticate']).toContain('Bearer');
      await done('POST', path, sent, { apiKey: null, headers: { authorization: `Bearer ${inferring}` } });
    }
    expect((await call('GET', '/v1/models', undefined, { apiKey: stranger })).body.error.code).toBe(
      'insufficient_permissions',
    );
  });
});

describe('paths', () => {
  it('answers unknown ones and other methods in the same form', async () => {
    await refused('/v1/chat/completions', {}, [404, null, 'there are [/v1/embeddings, /v1/models, ']);
    await refused('/v1/chat/completions', {}, [401, null, 'missing authentication'], { apiKey: null });
    const other = await call('GET', '/v1/embeddings');
    expect([other.status, other.headers['allow'], other.body.error.message]).toEqual([
      ...[405, 'POST', expect.stringContaining('allowed: [POST]')],
    ]);
    await refused('/v1/embeddings?dims=3', { model: DENSE, input: 'a' }, [400, null, 'unrecognized parameter: [dims]']);
    const form = { headers: { 'content-type': 'text/plain' } };
    await refused('/v1/embeddings', { model: DENSE, input: 'a' }, [406, null, 'Content-Type'], form);
  });

  it('leaves an index that is called v1 to Elasticsearch’s interface', async () => {
    expect((await call('GET', '/v1/_search')).body.error.root_cause[0].type).toBe('index_not_found_exception');
    await done('PUT', '/v1');
    expect((await done('GET', '/v1/_count')).count).toBe(0);
    expect(Object.keys(await done('GET', '/v1'))).toEqual(['v1']);
  });
});

describe('GET /v1/models', () => {
  it('lists endpoints and models for these interfaces, and shows each', async () => {
    const { object, data } = await done('GET', '/v1/models', undefined, { apiKey: inferring });
    expect(object).toBe('list');
    const ids = data.map(({ id }: { id: string }) => id);
    expect(ids).toEqual([DENSE, '.all-minilm-l6-v2', 'cross', 'cuttable', 'nested'].filter((id) => ids.includes(id)));
    expect(ids).toHaveLength(5);
    for (const model of data) {
      expect(model).toMatchObject({ object: 'model', created: expect.any(Number), owned_by: expect.any(String) });
      expect(await done('GET', `/v1/models/${encodeURIComponent(model.id)}`)).toEqual(model);
    }
    await done('PUT', '/_ml/trained_models/cross/model_aliases/ranker');
    expect((await done('GET', '/v1/models/ranker')).id).toBe('ranker');
    for (const id of ['gone', '*', '.elser-2-elasticsearch']) {
      const { status, body } = await call('GET', `/v1/models/${id}`);
      expect([status, body.error.code], id).toEqual([404, 'model_not_found']);
    }
  });
});

describe('POST /embed_sparse', () => {
  it('makes the sparse vectors of texts, by the numbers of tokens', async () => {
    const one = await done('POST', '/embed_sparse', { inputs: TEXTS[0] });
    const both = await done('POST', '/embed_sparse', { inputs: TEXTS, truncate: null, prompt_name: null });
    expect(both).toHaveLength(2);
    expect(both[0]).toEqual(one[0]);
    const { sparse_embedding: known } = await done('POST', '/_inference/.elser-2-elasticsearch', { input: TEXTS });
    for (const [at, vector] of both.entries()) {
      const indices = vector.map((pair: any) => pair.index);
      expect(indices).toEqual([...new Set(indices)].sort((a: any, b: any) => a - b));
      const weights = (values: unknown[]): unknown[] => values.sort((a: any, b: any) => a - b);
      expect(weights(vector.map((pair: any) => pair.value))).toEqual(weights(Object.values(known[at].embedding)));
    }
    expect(await done('POST', '/embed_sparse', { inputs: TEXTS[0], model: '.elser_model_2' })).toEqual(one);
  });

  it('refuses what it cannot do in the form of text-embeddings-inference', async () => {
    const bad: (readonly [object, number, string])[] = [
      [{}, 400, '`inputs`'],
      [{ inputs: [] }, 400, '`inputs`'],
      [{ inputs: [''] }, 400, '`inputs`'],
      [{ inputs: [1] }, 400, 'a text or a list of texts is expected'],
      [{ inputs: 'a', prompt_name: 'query' }, 400, 'models here have no prompts'],
      [{ inputs: 'a', truncation_direction: 'Left' }, 400, 'leave out the end of a text'],
      [{ inputs: 'a', other: 1 }, 400, 'there is no such member'],
      [{ inputs: 'a', model: DENSE }, 400, 'makes dense vectors, use POST /v1/embeddings'],
      [{ inputs: 'a', model: 'missing' }, 404, 'missing'],
      [{ inputs: 'word '.repeat(2000) }, 413, 'more than the model reads'],
    ];
    for (const [body, status, message] of bad) {
      const answer = await call('POST', '/embed_sparse', body);
      expect([answer.status, answer.body], answer.text).toEqual([
        status,
        { error: expect.stringContaining(message), error_type: expect.any(String) },
      ]);
    }
    expect(await done('POST', '/embed_sparse', { inputs: 'word '.repeat(2000), truncate: true })).toHaveLength(1);
  });

  it('leaves an index of this name to be made, shown and deleted', async () => {
    await done('PUT', '/embed_sparse', {});
    expect((await call('PUT', '/embed_sparse/_doc/1', { n: 1 })).status).toBe(201);
    expect(Object.keys(await done('GET', '/embed_sparse'))).toEqual(['embed_sparse']);
    expect(await done('POST', '/embed_sparse', { inputs: 'a' })).toHaveLength(1);
    expect(await done('DELETE', '/embed_sparse')).toEqual({ acknowledged: true });
    const gone = await call('GET', '/embed_sparse');
    expect([gone.status, gone.body.error.type]).toEqual([404, 'index_not_found_exception']);
  });

  it('needs the privilege of inference', async () => {
    const headers = (encoded: string) => ({ headers: { authorization: `ApiKey ${encoded}` } });
    expect((await call('POST', '/embed_sparse', { inputs: 'a' }, headers(stranger))).status).toBe(403);
    expect((await call('POST', '/embed_sparse', { inputs: 'a' }, headers(inferring))).status).toBe(200);
  });
});

describe('POST /v1/rerank and /v2/rerank', () => {
  const inference_config = { text_similarity: { text: QUERY } };
  const docs = DOCUMENTS.map((text) => ({ text_field: text }));
  const sigmoid = (score: number): number => 1 / (1 + Math.exp(-score));

  it('sorts documents by the scores of a cross-encoder, from 0 to 1', async () => {
    const { inference_results: raw } = await done('POST', '/_ml/trained_models/cross/_infer', {
      docs,
      inference_config,
    });
    const expected = raw
      .map(({ predicted_value: score }: any, index: number) => ({ index, relevance_score: sigmoid(score) }))
      .sort((a: any, b: any) => b.relevance_score - a.relevance_score);
    expect(await ranked({})).toEqual(expected);
    expect(await ranked({ top_n: 2 }, '/v2/rerank')).toEqual(expected.slice(0, 2));
    expect(await ranked({ top_n: 99 })).toEqual(expected);
    const shown = await ranked({ documents: DOCUMENTS.map((text) => ({ text })), return_documents: true });
    expect(shown).toEqual(expected.map((entry: any) => ({ ...entry, document: { text: DOCUMENTS[entry.index] } })));
    // An endpoint answers alike; and the model's name stands for it then.
    const settings = { num_allocations: 1, num_threads: 1, model_id: 'cross' };
    await done('PUT', '/_inference/rerank/by-endpoint', { service: 'elasticsearch', service_settings: settings });
    for (const model of ['by-endpoint', 'cross']) {
      const entries = await ranked({ model });
      expect(entries.map(({ index }) => index)).toEqual(expected.map(({ index }: any) => index));
      entries.forEach(({ relevance_score }, at) => {
        expect(relevance_score).toBeCloseTo(expected[at].relevance_score, 5);
      });
    }
    await done('DELETE', '/_inference/by-endpoint?force=true');
  });

  it('has the members of Cohere’s answer', async () => {
    for (const version of ['1', '2']) {
      const body = { model: 'cross', query: QUERY, documents: ['a'] };
      const answer = await done('POST', `/v${version}/rerank`, body);
      expect(Object.keys(answer)).toEqual(['id', 'model', 'results', 'usage', 'meta']);
      expect(answer.usage.total_tokens).toBeGreaterThan(3);
      const tokens = { input_tokens: answer.usage.total_tokens };
      expect([answer.model, answer.meta]).toEqual(['cross', { api_version: { version }, tokens }]);
    }
  });

  it('refuses what it cannot read, and says where it is', async () => {
    const good = { model: 'cross', query: QUERY, documents: ['a'] };
    for (const [body, param, message] of [
      [{ ...good, model: undefined }, 'model', 'this parameter is required'],
      [{ ...good, query: undefined }, 'query', 'this parameter is required'],
      [{ ...good, query: '' }, 'query', 'an empty text'],
      [{ ...good, query: ['a'] }, 'query', 'a text is expected, not a list'],
      [{ ...good, documents: undefined }, 'documents', 'this parameter is required'],
      [{ ...good, documents: 'a' }, 'documents', 'a list is expected, not a string'],
      [{ ...good, documents: [] }, 'documents', 'the list is empty'],
      [{ ...good, documents: Array.from({ length: 1025 }, () => 'a') }, 'documents', 'at most [1024] are taken'],
      [{ ...good, documents: ['a', 1] }, 'documents[1]', 'a text is expected, not a number'],
      [{ ...good, documents: [{}] }, 'documents[0].text', 'a text is expected, not nothing'],
      [{ ...good, documents: [{ text: 'a', title: 'b' }] }, 'documents[0].title', 'only [text] is read'],
      [{ ...good, top_n: 0 }, 'top_n', 'a whole number above 0'],
      [{ ...good, top_n: '2' }, 'top_n', 'a whole number above 0'],
      [{ ...good, return_documents: 'yes' }, 'return_documents', 'one of [true, false]'],
      [{ ...good, rank_fields: ['a'] }, 'rank_fields', 'documents have one text here'],
      [{ ...good, max_chunks_per_doc: 10 }, 'max_chunks_per_doc', 'a document is not divided'],
      [{ ...good, k: 1 }, 'k', 'there is no such parameter'],
      [{ ...good, model: DENSE }, 'model', 'makes dense vectors; there are [cross]'],
    ] as const) {
      await refused('/v1/rerank', body, [400, param, message]);
    }
    await refused('/v2/rerank', { ...good, model: 'gone' }, [404, 'model', 'there are [cross]']);
  });
});
