// A model that changes behind its endpoint, and models that a query names: vectors of two models never lie in one field, and none is
// compared with those of another.
import { cpSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { fieldOf } from '../support/model-change.js';
import { type Answer, type RunningServer, startServer } from '../support/server.js';

const FIXTURE = fileURLToPath(new URL('../../crates/encoder/tests/fixtures/checkpoint-bert', import.meta.url));

let models: string;
let server: RunningServer;
const call = (method: string, path: string, body?: object): Promise<Answer> => server.request(method, path, body);
const done = async (method: string, path: string, body?: object): Promise<any> => {
  const answer = await call(method, path, body);
  expect(answer.status, answer.text).toBeLessThan(300);
  return answer.body;
};
const refused = async (method: string, path: string, body: object, reason: string): Promise<void> => {
  const answer = await call(method, path, body);
  expect([answer.status, answer.text], path).toEqual([400, expect.stringContaining(reason)]);
};
const pool = (model: string, pooling: string): void => {
  writeFileSync(join(models, model, 'sparrow.json'), JSON.stringify({ pooling }));
};
const semantic = { query: { semantic: { field: 'body', query: 'red coin' } } };
const knn = (model_id: string) => ({
  knn: { field: 'body', k: 5, query_vector_builder: { text_embedding: { model_id, model_text: 'red coin' } } },
});
const ids = async (body: object): Promise<string[]> =>
  (await done('POST', '/books/_search', body)).hits.hits.map((hit: { _id: string }) => hit._id).sort();

beforeAll(async () => {
  models = mkdtempSync(join(tmpdir(), 'sparrow-models-'));
  for (const name of ['changing', 'steady']) cpSync(FIXTURE, join(models, name), { recursive: true });
  pool('steady', 'cls');
  server = await startServer({ args: ['--models', models] });
  for (const [endpoint, model_id] of [
    ['mine', 'changing'],
    ['theirs', 'steady'],
  ]) {
    const service_settings = { num_allocations: 1, num_threads: 1, model_id };
    await done('PUT', `/_inference/text_embedding/${endpoint!}`, { service: 'elasticsearch', service_settings });
  }
  await done('PUT', '/books', {
    mappings: { properties: { n: { type: 'integer' }, body: { type: 'semantic_text', inference_id: 'mine' } } },
  });
  await done('PUT', '/books/_doc/1?refresh=true', { n: 1, body: 'red coin' });
});
afterAll(async () => {
  await server.stop();
});

describe('a semantic_text field', () => {
  it('is searched with no other model, though its own was never changed', async () => {
    expect(await ids(knn('mine'))).toEqual(['1']);
    await refused(
      'POST',
      '/books/_search',
      knn('theirs'),
      'field [body] holds the output of model [mine] and cannot be searched with model [theirs]',
    );
  });

  it('is searched by a search_inference_id of the same model, and by none of another', async () => {
    const service_settings = { num_allocations: 1, num_threads: 1, model_id: 'changing' };
    await done('PUT', '/_inference/text_embedding/mine-too', { service: 'elasticsearch', service_settings });
    for (const [index, search_inference_id] of [
      ['alike', 'mine-too'],
      ['unlike', 'theirs'],
    ]) {
      await done('PUT', `/${index!}`, {
        mappings: { properties: { body: { type: 'semantic_text', inference_id: 'mine', search_inference_id } } },
      });
      await done('PUT', `/${index!}/_doc/1?refresh=true`, { body: 'red coin' });
    }
    const sentence =
      'field [body] holds the output of model [mine] and cannot be searched with model [theirs]: their vocabularies or weights ' +
      'differ; search with an endpoint of model [mine] ([inference_id] of the query, [search_inference_id] of the mapping), or give ' +
      'the field the other model with [POST /unlike/_ext/model/_change]';
    const unnamed = {
      knn: { field: 'body', k: 5, query_vector_builder: { text_embedding: { model_text: 'red coin' } } },
    };
    for (const body of [semantic, { query: { match: { body: 'red coin' } } }, knn('theirs'), unnamed]) {
      await refused('POST', '/unlike/_search', body, sentence);
      const { knn: named } = body as { knn?: { query_vector_builder: { text_embedding: { model_id?: string } } } };
      if (named?.query_vector_builder.text_embedding.model_id) continue;
      expect((await done('POST', '/alike/_search', body)).hits.total.value).toBe(1);
    }
    await refused('POST', '/unlike/_count', { query: semantic.query }, sentence);
    expect((await done('POST', '/unlike/_search', knn('mine'))).hits.total.value).toBe(1);
    await refused(
      'POST',
      '/alike/_ext/model/_change',
      { field: 'body', inference_id: 'theirs', search_inference_id: 'mine' },
      '[inference_id] [theirs] and [search_inference_id] [mine] have different models: they cannot be compared',
    );
  });

  it('keeps to the model that filled it when its endpoint has another one, until it is changed', async () => {
    const before = (await fieldOf(server, 'books')).fingerprint as string;
    await server.stop();
    pool('changing', 'cls');
    server = await startServer({ data: server.data, args: ['--models', models] });
    const now = (await done('GET', '/_ml/trained_models/changing')).trained_model_configs[0].metadata.fingerprint;
    expect(now).not.toBe(before);
    expect((await fieldOf(server, 'books')).fingerprint).toBe(before);

    const holds = `field [body] holds the output of model [${before}] and cannot`;
    await refused('PUT', '/books/_doc/2', { body: 'blue coin' }, `${holds} take that of [mine]`);
    await refused('POST', '/books/_update/1', { doc: { body: 'blue coin' } }, `${holds} take that of [mine]`);
    await refused('POST', '/books/_search', semantic, `${holds} be searched with model [mine]`);
    await refused('POST', '/books/_search', knn('mine'), `${holds} be searched with model [mine]`);
    // What needs no vector goes on, and leaves those that are there.
    await done('POST', '/books/_update/1?refresh=true', { doc: { n: 2 } });
    await done('PUT', '/books/_doc/3', { n: 3 });
    expect(await ids({ query: { exists: { field: 'body' } } })).toEqual(['1']);

    const changed = await done('POST', '/books/_ext/model/_change', {
      ...{ field: 'body', inference_id: 'mine', switch: 'manual' },
      compare: { queries: ['red coin'] },
    });
    // The old vectors cannot be asked any more, so there is nothing to compare.
    expect([changed.state, changed.compared]).toEqual(['ready', undefined]);
    expect((await fieldOf(server, 'books')).change.to.fingerprint).toBe(now);
    // Nothing makes the old vectors for it: it gets the new ones alone.
    await done('PUT', '/books/_doc/4?refresh=true', { body: 'old blue coin' });
    await refused('POST', '/books/_search', semantic, holds);
    await done('POST', '/books/_ext/model/_switch');
    expect(await ids(semantic)).toEqual(['1', '4']);
    expect((await fieldOf(server, 'books')).fingerprint).toBe(now);
    await done('POST', '/books/_ext/model/_drop');
    await refused(
      'POST',
      '/books/_ext/model/_change',
      { field: 'body', inference_id: 'mine' },
      'field [body] has the model [mine] already',
    );
    await server.kill();
    server = await startServer({ data: server.data, args: ['--models', models] });
    await done('PUT', '/books/_doc/2?refresh=true', { body: 'blue coin' });
    expect(await ids(semantic)).toEqual(['1', '2', '4']);
    expect((await fieldOf(server, 'books')).fingerprint).toBe(now);
  });

  it('names the model that its endpoint lacks where the folder of models is not given again', async () => {
    await server.stop();
    server = await startServer({ data: server.data });
    const answer = await server.request('POST', '/books/_search', semantic);
    expect(answer.status).toBe(404);
    expect(answer.text).toContain('Could not find trained model [changing]: there are [.all-minilm-l6-v2, ');
  });
});
