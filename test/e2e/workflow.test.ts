// The whole documented workflow, told by the official client.
import { Client, errors } from '@elastic/elasticsearch';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { PASSAGES } from '../support/passages.js';
import { type RunningServer, startServer } from '../support/server.js';

const MODEL = '.sparse_encoder_model_2';

let server: RunningServer;
let client: Client;

beforeAll(async () => {
  server = await startServer();
  client = new Client({ node: server.url, auth: { apiKey: server.apiKey } });
});

afterAll(async () => {
  await client.close();
  await server.stop();
});

/** Waits for a task through the documented endpoint. */
async function finished(taskId: string) {
  for (;;) {
    const task = await client.tasks.get({ task_id: taskId });
    if (task.completed) return task;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe('the documented workflow, in order', () => {
  it('finds a server that the client accepts', async () => {
    const info = await client.info();
    expect(info.version.number).toMatch(/^8\./);
    expect(await client.ping()).toBe(true);
  });

  it('deploys the model, or finds it deployed', async () => {
    const models = await client.ml.getTrainedModels({ model_id: MODEL });
    expect(models.trained_model_configs[0]?.model_id).toBe(MODEL);
    const stats = await client.ml.getTrainedModelsStats({ model_id: MODEL });
    if (stats.trained_model_stats[0]?.deployment_stats?.state !== 'started') {
      await client.ml.startTrainedModelDeployment({ model_id: MODEL, wait_for: 'started' });
    }
    const inferred = await client.ml.inferTrainedModel({ model_id: MODEL, docs: [{ text_field: 'postage stamps' }] });
    const tokens = inferred.inference_results[0]?.predicted_value as unknown as Record<string, number>;
    expect(tokens['stamps']).toBeGreaterThan(1);
  });

  it('creates the source index and loads it in bulk', async () => {
    await client.indices.create({ index: 'source', mappings: { properties: { content: { type: 'text' } } } });
    const operations = Object.entries(PASSAGES).flatMap(([id, content]) => [{ index: { _id: id } }, { content }]);
    const loaded = await client.bulk({ index: 'source', operations, refresh: true });
    expect(loaded.errors).toBe(false);
    expect(loaded.items.map((item) => item.index?.result)).toEqual(Object.keys(PASSAGES).map(() => 'created'));
    expect((await client.count({ index: 'source' })).count).toBe(6);
  });

  it('creates the destination index with a sparse_vector field', async () => {
    const created = await client.indices.create({
      index: 'semantic',
      mappings: {
        _source: { excludes: ['content_embedding'] },
        properties: { content_embedding: { type: 'sparse_vector' }, content: { type: 'text' } },
      },
    });
    expect(created).toMatchObject({ acknowledged: true, shards_acknowledged: true, index: 'semantic' });
    expect(await client.indices.exists({ index: 'semantic' })).toBe(true);
    expect(await client.indices.exists({ index: 'missing' })).toBe(false);
  });

  it('creates the pipeline and tries it on a document', async () => {
    await client.ingest.putPipeline({
      id: 'embed',
      description: 'token-weight pairs of the content',
      processors: [
        {
          inference: { model_id: MODEL, input_output: [{ input_field: 'content', output_field: 'content_embedding' }] },
        },
      ],
    });
    const simulated = await client.ingest.simulate({ id: 'embed', docs: [{ _source: { content: 'bread' } }] });
    expect(simulated.docs[0]?.doc?._source).toMatchObject({ content: 'bread', model_id: MODEL });
  });

  it('reindexes through the pipeline as a task', async () => {
    const started = await client.reindex({
      wait_for_completion: false,
      refresh: true,
      source: { index: 'source', size: 2 },
      dest: { index: 'semantic', pipeline: 'embed' },
    });
    expect(Object.keys(started)).toEqual(['task']);
    const task = await finished(String(started.task));
    expect(task.task.action).toBe('indices:data/write/reindex');
    expect(task.response).toMatchObject({ total: 6, created: 6, batches: 3, failures: [] });
  });

  it('searches by meaning', async () => {
    const found = await client.search({
      index: 'semantic',
      query: { text_expansion: { content_embedding: { model_id: MODEL, model_text: 'stamp collector' } } },
    });
    expect(found.hits.hits[0]?._id).toBe('stamps');
    expect(found.hits.hits[0]?._source).toEqual({ content: PASSAGES['stamps'], model_id: MODEL });
  });

  it('searches with a compound query', async () => {
    const found = await client.search({
      index: 'semantic',
      min_score: 1,
      query: {
        bool: {
          should: [
            { text_expansion: { content_embedding: { model_id: MODEL, model_text: 'kids doctor', boost: 1 } } },
            { query_string: { query: 'physician', boost: 4 } },
          ],
        },
      },
    });
    expect(found.hits.hits[0]?._id).toBe('child');
    for (const hit of found.hits.hits) expect(hit._score).toBeGreaterThanOrEqual(1);
  });

  it('fuses both kinds of search', async () => {
    // The client's method knows the newer spelling only.
    const found = await client.transport.request<{ hits: { max_score: unknown; hits: { _id: string }[] } }>({
      method: 'POST',
      path: '/semantic/_search',
      body: {
        sub_searches: [
          { query: { match: { content: 'leisurely walk' } } },
          { query: { text_expansion: { content_embedding: { model_id: MODEL, model_text: 'strolling slowly' } } } },
        ],
        rank: { rrf: {} },
      },
    });
    expect(found.hits.hits[0]?._id).toBe('walk');
    expect(found.hits.hits[0]).toHaveProperty('_rank', 1);
    expect(found.hits.max_score).toBeNull();
  });

  it('upgrades the index, which is current', async () => {
    const upgraded = await client.transport.request<Record<string, unknown>>({
      method: 'POST',
      path: '/_ext/migration/upgrade/semantic',
    });
    expect(upgraded).toMatchObject({ total: 0, updated: 0, failures: [] });
  });

  it('reads, updates and deletes single documents', async () => {
    const index = 'source';
    const written = await client.index({ index, id: '1', document: { content: 'one' } });
    expect(written).toMatchObject({ result: 'created', _version: 1 });
    expect(await client.update({ index, id: '1', doc: { content: 'two' } })).toMatchObject({ result: 'updated' });
    const got = await client.get<{ content: string }>({ index, id: '1' });
    expect(got._source?.content).toBe('two');
    const many = await client.mget({ index, ids: ['1', 'nobody'] });
    expect(many.docs.map((doc) => 'found' in doc && doc.found)).toEqual([true, false]);
    const conflict = client.index({ index, id: '1', document: {}, if_seq_no: 0, if_primary_term: 1 });
    await expect(conflict).rejects.toMatchObject({ statusCode: 409 });
    expect(await client.delete({ index, id: '1' })).toMatchObject({ result: 'deleted' });
    await expect(client.get({ index, id: '1' })).rejects.toBeInstanceOf(errors.ResponseError);
  });

  it('lists what there is', async () => {
    const listed = await client.cat.indices({ format: 'json' });
    expect(listed.map((row) => row.index).sort()).toEqual(['semantic', 'source']);
    expect(await client.cat.indices({ index: 'semantic' })).toContain('semantic');
    expect((await client.cluster.health()).status).toMatch(/green|yellow/);
  });

  it('makes a key that may only read, and ends it', async () => {
    const key = await client.security.createApiKey({
      name: 'reader',
      role_descriptors: { r: { indices: [{ names: ['semantic'], privileges: ['read'] }] } },
    });
    const reader = new Client({ node: server.url, auth: { apiKey: key.encoded } });
    expect((await reader.count({ index: 'semantic' })).count).toBe(6);
    await expect(reader.indices.delete({ index: 'semantic' })).rejects.toMatchObject({ statusCode: 403 });
    expect((await client.security.invalidateApiKey({ ids: [key.id] })).invalidated_api_keys).toEqual([key.id]);
    await expect(reader.count({ index: 'semantic' })).rejects.toMatchObject({ statusCode: 401 });
    await reader.close();
  });

  it('keeps everything over a restart', async () => {
    expect(await server.stop()).toBe(0);
    await client.close();
    server = await startServer({ data: server.data });
    client = new Client({ node: server.url, auth: { apiKey: server.apiKey } });
    const found = await client.search({
      index: 'semantic',
      query: { text_expansion: { content_embedding: { model_id: MODEL, model_text: 'afraid of open spaces' } } },
    });
    expect(found.hits.hits[0]?._id).toBe('open');
    expect(Object.keys(await client.ingest.getPipeline({ id: 'embed' }))).toEqual(['embed']);
  });
});
