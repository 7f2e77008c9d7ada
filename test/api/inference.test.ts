// Inference endpoints and models against the real engine.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

const FIXTURES = fileURLToPath(new URL('../../crates/encoder/tests/fixtures/', import.meta.url));
let server: RunningServer;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparrow-models-'));
  server = await startServer({ args: ['--models', folder] });
});
afterAll(async () => {
  await server.stop();
});

const ELSER = { num_allocations: 1, num_threads: 1, model_id: '.elser_model_2' };
const call = (method: string, path: string, body?: unknown) => server.request(method, path, body);
const reason = async (method: string, path: string, body?: unknown): Promise<string> => {
  const { status, body: answer } = await call(method, path, body);
  const error = answer.error as { type: string; reason: string };
  return `${String(status)} ${error.type}: ${error.reason}`;
};
/** Everything that a refused request must leave as it was. */
const state = async (): Promise<string> => {
  const parts = ['/_inference', '/_ml/trained_models', '/_ml/trained_models/_stats?filter_path=**.deployment_id'];
  return (await Promise.all(parts.map((path) => call('GET', path)))).map(({ text }) => text).join('\n');
};

describe('_inference', () => {
  it('names what uses an endpoint only to who may know it', async () => {
    const keyWith = async (cluster: string[], names: string[]): Promise<string> => {
      const indices = names.length === 0 ? [] : [{ names, privileges: ['all'] }];
      const role_descriptors = { r: { cluster, indices } };
      return (await call('POST', '/_security/api_key', { name: 'k', role_descriptors })).body.encoded as string;
    };
    const service_settings = { num_allocations: 1, num_threads: 1 };
    await call('PUT', '/_inference/sparse_embedding/used', { service: 'elser', service_settings });
    for (const name of ['payroll-secret', 'mine-1']) {
      const properties = { t: { type: 'semantic_text', inference_id: 'used' } };
      expect((await call('PUT', `/${name}`, { mappings: { properties } })).status).toBe(200);
    }
    const inference = { model_id: 'used', input_output: [{ input_field: 'a', output_field: 'b' }] };
    await call('PUT', '/_ingest/pipeline/hidden-pipeline', { processors: [{ inference }] });
    const DRY = '/_inference/used?dry_run=true';
    const as = async (apiKey: string | undefined, path: string, method = 'DELETE', body?: unknown) =>
      server.request(method, path, body, apiKey === undefined ? {} : { apiKey });

    const all = (await as(undefined, DRY)).body;
    expect(all).toMatchObject({ pipelines: ['hidden-pipeline'], indexes: ['mine-1', 'payroll-secret'] });
    expect(all.error_message).toContain('[mine-1, payroll-secret]');
    const some = await keyWith(['manage_inference'], ['mine*']);
    const { text, body } = await as(some, DRY);
    expect(body).toMatchObject({ acknowledged: false, pipelines: [], indexes: ['mine-1'] });
    const real = await as(some, '/_inference/used');
    expect(real.status).toBe(409);
    for (const said of [text, real.text]) {
      expect(said).not.toMatch(/payroll|hidden/u);
      expect(said).toContain('referenced by pipelines: [1 that this API key may not see]');
      expect(said).toContain('for indexes: [mine-1, 1 that this API key may not see]');
    }
    const none = await as(await keyWith(['manage_inference'], []), DRY);
    expect(none.text).not.toMatch(/payroll|hidden|mine/u);
    expect(none.body.error_message).toContain('for indexes: [2 that this API key may not see]');
    // A key that may read pipelines gets their names, and one that may do everything with indices gets those of indices.
    const reader = await as(await keyWith(['manage_inference', 'read_pipeline'], []), DRY);
    expect(reader.body).toMatchObject({ pipelines: ['hidden-pipeline'], indexes: [] });
    const everywhere = await as(await keyWith(['manage_inference'], ['*']), DRY);
    expect(everywhere.body).toMatchObject({ pipelines: [], indexes: ['mine-1', 'payroll-secret'] });

    const stopped = await as(await keyWith(['manage_ml'], ['*']), '/_ml/trained_models/used/deployment/_stop', 'POST');
    expect(stopped.status).toBe(409);
    expect(stopped.text).not.toContain('hidden');
    await call('DELETE', '/_inference/used?force=true');
    const settings = { service: 'elasticsearch', service_settings: { ...service_settings, model_id: '.rerank-v1' } };
    const other = await as(some, '/_inference/rerank/used', 'PUT', settings);
    expect([other.status, other.text]).toEqual([expect.any(Number), expect.not.stringMatching(/payroll/u)]);
    for (const name of ['payroll-secret', 'mine-1']) await call('DELETE', `/${name}`);
    await call('DELETE', '/_ingest/pipeline/hidden-pipeline');
    await call('DELETE', '/_inference/used?force=true');
  });

  it('makes, shows, uses, changes and removes an endpoint', async () => {
    const made = await call('PUT', '/_inference/sparse_embedding/my-elser?timeout=30s', {
      service: 'elser',
      service_settings: { num_allocations: 1, num_threads: 1 },
    });
    expect(made.status).toBe(200);
    const shown = {
      inference_id: 'my-elser',
      task_type: 'sparse_embedding',
      service: 'elser',
      service_settings: ELSER,
      task_settings: {},
      chunking_settings: { strategy: 'sentence', max_chunk_size: 250, sentence_overlap: 1 },
    };
    expect(made.body).toEqual(shown);
    for (const path of ['/my-elser', '/sparse_embedding/my-elser']) {
      expect((await call('GET', `/_inference${path}`)).body).toEqual({ endpoints: [shown] });
    }
    const ids = async (path: string): Promise<string[]> =>
      ((await call('GET', path)).body.endpoints as { inference_id: string }[]).map((it) => it.inference_id);
    expect(await ids('/_inference/sparse_embedding/_all')).toEqual([
      '.elser-2-elasticsearch',
      '.splade-minilm-l6-elasticsearch',
      'my-elser',
    ]);
    expect(await ids('/_inference/rerank/_all')).toEqual([]);
    expect(await ids('/_inference/_all')).toEqual(await ids('/_inference'));

    const { body } = await call('POST', '/_inference/my-elser', { input: ['a blanket', 'a '.repeat(600)] });
    expect(body.sparse_embedding.map((it: { is_truncated: boolean }) => it.is_truncated)).toEqual([false, true]);
    const search = await call('POST', '/_inference/sparse_embedding/my-elser', { input: 'x', input_type: 'search' });
    expect(Object.keys(search.body.sparse_embedding[0] as object)).toEqual(['is_truncated', 'embedding']);
    expect(await reason('POST', '/_inference/my-elser/_stream', { input: 'x' })).toBe(
      '405 status_exception: Streaming is not allowed for service [elser] and task [sparse_embedding]',
    );

    const grown = await call('PUT', '/_inference/my-elser/_update', { service_settings: { num_allocations: 2 } });
    expect(grown.body.service_settings.num_allocations).toBe(2);
    const { body: stats } = await call('GET', '/_ml/trained_models/.elser_model_2/_stats');
    const deployment = stats.trained_model_stats
      .map((it: { deployment_stats: { deployment_id: string } }) => it.deployment_stats)
      .find((it: { deployment_id: string }) => it.deployment_id === 'my-elser');
    expect(deployment.number_of_allocations).toBe(2);
    const kinds = stats.trained_model_stats.map((it: { arithmetic: string }) => it.arithmetic);
    expect(new Set(kinds)).toEqual(new Set(['float32']));

    expect((await call('DELETE', '/_inference/my-elser')).body.acknowledged).toBe(true);
    expect(await reason('GET', '/_inference/my-elser')).toContain(
      '404 resource_not_found_exception: Inference endpoint not found [my-elser]: ',
    );
  });

  it('stands on a deployment that others manage, and guards its own', async () => {
    const start =
      '/_ml/trained_models/.all-minilm-l6-v2/deployment/_start?deployment_id=shared&number_of_allocations=2';
    expect((await call('POST', start)).status).toBe(200);
    const on = (settings: object) => ({ service: 'elasticsearch', service_settings: settings });
    expect(await reason('PUT', '/_inference/text_embedding/on-it', on({ deployment_id: 'gone' }))).toBe(
      '404 resource_not_found_exception: deployment with id [gone] not found',
    );
    expect(
      await reason('PUT', '/_inference/on-it', on({ deployment_id: 'shared', model_id: '.elser_model_2' })),
    ).toContain(
      '400 status_exception: Deployment [shared] uses model [.all-minilm-l6-v2] which does not match the model',
    );
    const made = await call('PUT', '/_inference/text_embedding/on-it', on({ deployment_id: 'shared' }));
    expect(made.body.service_settings).toMatchObject({
      deployment_id: 'shared',
      model_id: '.all-minilm-l6-v2',
      num_allocations: 2,
      num_threads: 1,
      dimensions: 384,
    });
    expect((await call('POST', '/_inference/on-it', { input: 'a' })).body.text_embedding[0].embedding).toHaveLength(
      384,
    );
    await call('PUT', '/_inference/own', on({ num_allocations: 1, num_threads: 1, model_id: '.elser_model_2' }));
    await call('PUT', '/_ingest/pipeline/by-name', {
      processors: [{ inference: { model_id: 'third', input_output: { input_field: 'a', output_field: 'b' } } }],
    });
    await call('POST', '/_ml/trained_models/.elser_model_2/deployment/_start?deployment_id=third');
    for (const [id, wanted] of [
      ['shared', 'Cannot stop deployment [shared] as it is used by inference endpoint [on-it]'],
      ['own', 'Cannot stop deployment [own] as it was created by inference endpoint [own]'],
      // There are other deployments of the model, but the pipeline names this one.
      [
        'third',
        'Cannot stop deployment [third] as it is referenced by ingest processors; use force to stop the deployment',
      ],
    ]) {
      expect(await reason('POST', `/_ml/trained_models/${id!}/deployment/_stop`)).toBe(
        `409 status_exception: ${wanted!}`,
      );
    }
    expect(await reason('POST', '/_ml/trained_models/own/deployment/_update', { number_of_allocations: 2 })).toBe(
      '409 status_exception: Cannot update deployment [own] as it was created by inference endpoint [own]. This model ' +
        'deployment must be updated through the inference API.',
    );
    expect((await call('DELETE', '/_ingest/pipeline/by-name')).status).toBe(200);
    expect((await call('DELETE', '/_inference/on-it')).status).toBe(200);
    expect((await call('DELETE', '/_inference/own')).status).toBe(200);
    for (const id of ['shared', 'third']) {
      expect((await call('POST', `/_ml/trained_models/${id}/deployment/_stop`)).body).toEqual({ stopped: true });
    }
  });

  it('says how its vectors are compared, and is not replaced by one that fits no index', async () => {
    const endpoint = (similarity: string) => ({
      service: 'elasticsearch',
      service_settings: { num_allocations: 1, num_threads: 1, model_id: '.all-minilm-l6-v2', similarity },
    });
    expect((await call('PUT', '/_inference/text_embedding/dots', endpoint('dot_product'))).status).toBe(200);
    await call('PUT', '/dotted', { mappings: { properties: { s: { type: 'semantic_text', inference_id: 'dots' } } } });
    expect((await call('PUT', '/dotted/_doc/1?refresh=true', { s: 'blue whales' })).status).toBe(201);
    const { body } = await call('GET', '/dotted/_mapping');
    expect(body.dotted.mappings.properties.s.model_settings).toMatchObject({
      similarity: 'dot_product',
      dimensions: 384,
    });
    const found = await call('POST', '/dotted/_search', { query: { semantic: { field: 's', query: 'blue whales' } } });
    expect(found.body.hits.hits[0]._score).toBeCloseTo(1, 3);
    expect((await call('DELETE', '/_inference/dots?force=true')).status).toBe(200);
    const before = await state();
    const elser = { service: 'elasticsearch', service_settings: ELSER };
    for (const other of [endpoint('cosine'), elser]) {
      expect(await reason('PUT', '/_inference/dots', other)).toBe(
        '400 status_exception: Inference endpoint [dots] could not be created because the inference_id is being used in ' +
          'mappings with incompatible settings for indices: [dotted]. Please either use a different inference_id or update ' +
          'the index mappings to refer to a different inference_id.',
      );
    }
    expect(await state()).toBe(before);
    expect((await call('PUT', '/_inference/dots', endpoint('dot_product'))).status).toBe(200);
    await call('DELETE', '/dotted');
    expect((await call('DELETE', '/_inference/dots')).status).toBe(200);
  });

  it.each([
    ['PUT', '/x', undefined, '400 parse_exception: request body is required'],
    ['PUT', '/x', {}, 'Inference endpoint configuration is missing the [service] setting'],
    ['PUT', '/x', { service: 'nope' }, '400 status_exception: Unknown service [nope]'],
    ['PUT', '/x', { service: 'cohere', service_settings: {} }, 'Unknown service [cohere]'],
    ['PUT', '/x', { service: 'elser' }, '[service_settings]'],
    ['PUT', '/X', { service: 'elser', service_settings: ELSER }, "Invalid inference_id; 'X' can contain lowercase"],
    ['PUT', '/x', { service: 'elser', service_settings: {} }, 'does not contain the required setting [num_threads];'],
    [
      'PUT',
      '/x',
      { service: 'elser', service_settings: { num_threads: 1 } },
      'does not contain one of the required settings [num_allocations, adaptive_allocations]',
    ],
    [
      'PUT',
      '/x',
      { service: 'elasticsearch', service_settings: { num_threads: 1, num_allocations: 1 } },
      '400 illegal_argument_exception: Error parsing service settings, model_id must be provided',
    ],
    [
      'PUT',
      '/x',
      { service: 'elser', service_settings: { num_threads: 0, num_allocations: 'a' } },
      'Invalid value [0]. [num_threads] must be a positive integer',
    ],
    [
      'PUT',
      '/x',
      { service: 'elser', service_settings: { ...ELSER, size: 1 } },
      'Configuration contains settings [{size=1}] unknown to the [elser] service',
    ],
    ['PUT', '/x', { service: 'elser', service_settings: ELSER, extra: 1 }, 'settings [{extra=1}] unknown'],
    ['PUT', '/x', { service: 'elser', service_settings: ELSER, task_settings: { a: 1 } }, 'settings [{a=1}] unknown'],
    [
      'PUT',
      '/x',
      { service: 'elser', service_settings: ELSER, chunking_settings: { strategy: 'word', max_chunk_size: 3 } },
      '[max_chunk_size] must be a greater than or equal to [10.0]',
    ],
    [
      'PUT',
      '/x',
      {
        service: 'elser',
        service_settings: ELSER,
        chunking_settings: { strategy: 'recursive', max_chunk_size: 30, separators: ['('] },
      },
      '[chunking_settings] Invalid value [(] of [separators]',
    ],
    [
      'PUT',
      '/x',
      { service: 'elasticsearch', service_settings: { ...ELSER, model_id: 'gone' } },
      '404 resource_not_found_exception: No known trained model with model_id [gone]',
    ],
    ['PUT', '/text_embedding/x', { service: 'elasticsearch', service_settings: ELSER }, 'does not match model'],
    [
      'PUT',
      '/rerank/x',
      { service: 'elasticsearch', service_settings: ELSER },
      'does not match model [.elser_model_2]',
    ],
    ['PUT', '/rerank/x', { service: 'elser', service_settings: ELSER }, 'does not support task type [rerank]'],
    ['PUT', '/foo/x', { service: 'elasticsearch', service_settings: ELSER }, 'Unknown task_type [foo]'],
    [
      'PUT',
      '/sparse_embedding/x',
      { task_type: 'text_embedding', service: 'elser', service_settings: ELSER },
      'Cannot resolve conflicting task_type parameter in the request URL [sparse_embedding] and the request body',
    ],
    [
      'PUT',
      '/all-minilm-l6-v2',
      { service: 'elser', service_settings: ELSER },
      'Requested inference endpoint ID [all-minilm-l6-v2] matches existing trained model ID(s) but must not.',
    ],
    [
      'PUT',
      '/x',
      { service: 'elser', service_settings: { num_threads: 32, num_allocations: 900 } },
      '429 status_exception: Could not start deployment because no ML nodes with sufficient capacity were found',
    ],
    ['GET', '/x', undefined, '404 resource_not_found_exception: Inference endpoint not found [x]'],
    ['DELETE', '/x', undefined, 'Inference endpoint not found [x]'],
    [
      'GET',
      '/text_embedding/.elser-2-elasticsearch',
      undefined,
      "Requested task type [text_embedding] does not match the inference endpoint's task type [sparse_embedding]",
    ],
    [
      'DELETE',
      '/.elser-2-elasticsearch',
      undefined,
      'is a reserved inference endpoint. Use the force=true query parameter to delete the inference endpoint.',
    ],
    ['PUT', '/x/_update', {}, 'The inference endpoint [x] does not exist and cannot be updated'],
    ['POST', '/x', { input: 'a' }, 'Inference endpoint not found [x]'],
    ['POST', '/.elser-2-elasticsearch', {}, 'Validation Failed: 1: Field [input] cannot be null;'],
    ['POST', '/.elser-2-elasticsearch', { input: [] }, 'Field [input] cannot be an empty array'],
    ['POST', '/.elser-2-elasticsearch', { input: [1] }, 'failed to parse field [input]'],
    ['POST', '/.elser-2-elasticsearch', { input: 'a', foo: 1 }, 'unknown field [foo]'],
    ['POST', '/.elser-2-elasticsearch', { input: 'a', query: 'b' }, 'Field [query] cannot be specified for task type'],
    ['POST', '/.elser-2-elasticsearch', { input: 'a', input_type: 'b' }, '[input_type] must be one of'],
    ['POST', '/text_embedding/.elser-2-elasticsearch', { input: 'a' }, 'Incompatible task_type, the requested type'],
    ['POST', '/.elser-2-elasticsearch?timeout=soon', { input: 'a' }, 'failed to parse setting [timeout]'],
  ])('refuses %s /_inference%s %j', async (method, path, body, wanted) => {
    const before = await state();
    expect(await reason(method, `/_inference${path}`, body)).toContain(wanted);
    expect(await state()).toBe(before);
  });
});

/** The files of a small sparse model as a client uploads them. */
const ONNX = readFileSync(join(FIXTURES, 'plain-mlm/model.onnx'));
const VOCABULARY = Object.keys(
  (
    JSON.parse(readFileSync(join(FIXTURES, 'plain-mlm/tokenizer.json'), 'utf8')) as {
      model: { vocab: Record<string, number> };
    }
  ).model.vocab,
);
const CONFIG = {
  model_type: 'pytorch',
  description: 'a small one',
  tags: ['small', 'sparse'],
  metadata: { by: 'us' },
  input: { field_names: ['body'] },
  inference_config: { text_expansion: { tokenization: { bert: { max_sequence_length: 16 } } } },
};
const part = (bytes: Buffer, parts: number, length = ONNX.length): object => ({
  total_definition_length: length,
  total_parts: parts,
  definition: bytes.toString('base64'),
});
const MODELS = '/_ml/trained_models';

describe('_ml/trained_models', () => {
  it('uploads a model in parts, names it, runs it and deletes it', async () => {
    const put = await call('PUT', `${MODELS}/small`, CONFIG);
    expect(put.status).toBe(200);
    expect(put.body).toMatchObject({ model_id: 'small', fully_defined: false, tags: ['small', 'sparse'] });
    expect(await reason('POST', `${MODELS}/small/deployment/_start`)).toBe(
      '404 resource_not_found_exception: Could not find trained model definition [small]',
    );
    const half = Math.ceil(ONNX.length / 2);
    const pieces = [ONNX.subarray(0, half), ONNX.subarray(half)];
    for (const [number, piece] of [...pieces.entries()].reverse()) {
      expect((await call('PUT', `${MODELS}/small/definition/${String(number)}`, part(piece, 2))).body).toEqual({
        acknowledged: true,
      });
    }
    expect((await call('PUT', `${MODELS}/small/vocabulary`, { vocabulary: VOCABULARY })).body).toEqual({
      acknowledged: true,
    });
    const { body: shown } = await call('GET', `${MODELS}/small?include=definition_status`);
    expect(shown.trained_model_configs[0]).toMatchObject({
      fully_defined: true,
      description: 'a small one',
      metadata: { by: 'us', vocabulary_size: 13 },
      input: { field_names: ['body'] },
      inference_config: {
        text_expansion: { tokenization: { bert: { do_lower_case: true, max_sequence_length: 16, truncate: 'first' } } },
      },
    });
    expect(await reason('PUT', `${MODELS}/small/definition/0`, part(ONNX, 1))).toContain(
      'Trained machine learning model part [small][0] already exists',
    );
    expect(await reason('PUT', `${MODELS}/small`, CONFIG)).toBe(
      '400 resource_already_exists_exception: Trained machine learning model [small] already exists',
    );

    expect((await call('PUT', `${MODELS}/small/model_aliases/tiny-one`)).body).toEqual({ acknowledged: true });
    expect((await call('GET', `${MODELS}/tiny-one`)).body.trained_model_configs[0]).toMatchObject({
      model_id: 'small',
      metadata: { model_aliases: ['tiny-one'] },
    });
    const started = await call(
      'POST',
      `${MODELS}/small/deployment/_start?deployment_id=mine&wait_for=fully_allocated&timeout=20s&priority=low`,
    );
    expect(started.body.assignment.task_parameters).toMatchObject({ model_id: 'small', deployment_id: 'mine' });
    for (const id of ['small', 'tiny-one', 'mine']) {
      const { body } = await call('POST', `${MODELS}/${id}/_infer?timeout=5s`, {
        docs: [{ body: 'Old red stamps' }],
        inference_config: { text_expansion: { results_field: 'tokens' } },
      });
      expect(Object.keys(body.inference_results[0].tokens as object).length).toBeGreaterThan(0);
    }
    expect(await reason('POST', `${MODELS}/small/_infer`, { docs: [{ text_field: 'x' }] })).toContain(
      'Input field [body] does not exist in the source document',
    );
    expect(
      await reason('POST', `${MODELS}/small/_infer`, {
        docs: [{ body: 'x' }],
        inference_config: { text_embedding: {} },
      }),
    ).toContain('Trained model [small] is configured for task [text_expansion] but called with task [text_embedding]');
    const ids = async (query: string): Promise<string[]> =>
      ((await call('GET', `${MODELS}?${query}`)).body.trained_model_configs as { model_id?: string }[]).map(
        ({ model_id }) => model_id ?? '',
      );
    expect(await ids('tags=small,sparse')).toEqual(['small']);
    expect(await ids('tags=small,other')).toEqual([]);
    expect(await ids('tags=small&exclude_generated=true')).toEqual(['']);
    expect(await ids('from=1&size=1')).toEqual(['.sparse_encoder_model_2']);

    expect(await reason('DELETE', `${MODELS}/small`)).toBe(
      '409 status_exception: Cannot delete model [small] as it is currently deployed; use force to delete the model',
    );
    expect(await reason('DELETE', `${MODELS}/other/model_aliases/tiny-one`)).toBe(
      '409 status_exception: model_alias [tiny-one] does not refer to provided model_id [other]',
    );
    expect(await reason('DELETE', `${MODELS}/tiny-one?force=true`)).toContain('No known trained model');
    expect((await call('DELETE', `${MODELS}/small/model_aliases/tiny-one`)).body).toEqual({ acknowledged: true });
    expect(await reason('DELETE', `${MODELS}/small/model_aliases/tiny-one`)).toBe(
      '404 status_exception: model_alias [tiny-one] could not be found.',
    );
    expect((await call('DELETE', `${MODELS}/small?force=true&timeout=10s`)).body).toEqual({ acknowledged: true });
    expect(await reason('GET', `${MODELS}/small`)).toBe(
      '404 resource_not_found_exception: No known trained model with model_id [small]',
    );
    expect(await reason('POST', `${MODELS}/mine/_infer`, { docs: [{ body: 'x' }] })).toContain('404');
  });

  it('takes a model directory of the configured folder, and none outside', async () => {
    cpSync(join(FIXTURES, 'dense-pooled'), join(folder, 'dense'), { recursive: true });
    await symlink(FIXTURES, join(folder, 'link'));
    const put = (name: unknown) => ({ location: { directory: name }, prefix_strings: { search: 'red ' } });
    for (const name of ['..', '../x', '/etc', 'link', 'link/dense-pooled', 'gone', '', 'a\u0000b']) {
      expect(await reason('PUT', `${MODELS}/linked`, put(name)), name).toMatch(/^40[04] /);
    }
    const long = { ...put('dense'), prefix_strings: { search: 'r'.repeat(5000) } };
    expect(await reason('PUT', `${MODELS}/linked`, long)).toBe(
      '400 illegal_argument_exception: [prefix_strings] may have at most [4096] bytes each',
    );
    const made = await call('PUT', `${MODELS}/linked`, put('dense'));
    expect(made.body).toMatchObject({ model_id: 'linked', fully_defined: true, prefix_strings: { search: 'red ' } });
    const { dims } = { dims: made.body.inference_config.text_embedding.embedding_size as number };
    await call('PUT', '/_inference/text_embedding/linked-endpoint', {
      service: 'elasticsearch',
      service_settings: { num_allocations: 1, num_threads: 1, model_id: 'linked', dimensions: dims },
    });
    const vector = async (input: string, input_type: string): Promise<number[]> =>
      (await call('POST', '/_inference/linked-endpoint', { input, input_type })).body.text_embedding[0].embedding;
    expect(await vector('coin', 'search')).toEqual(await vector('red coin', 'ingest'));
    expect(await vector('coin', 'ingest')).toHaveLength(dims);
    await call('DELETE', '/_inference/linked-endpoint');
    expect((await call('DELETE', `${MODELS}/linked`)).status).toBe(200);
    expect(readFileSync(join(folder, 'dense/model.onnx')).length).toBeGreaterThan(0);
  });

  it('runs checkpoints as they lie on the hub, with the prompts of their own files', async () => {
    const start = async (model: string): Promise<void> => {
      cpSync(join(FIXTURES, model), join(folder, model), { recursive: true });
      const put = await call('PUT', `${MODELS}/${model}`, { location: { directory: model } });
      expect([put.status, put.text]).toMatchObject([200, expect.any(String)]);
      expect((await call('POST', `${MODELS}/${model}/deployment/_start?wait_for=started`)).status).toBe(200);
      await call('PUT', `/_inference/text_embedding/of-${model}`, {
        service: 'elasticsearch',
        service_settings: { num_threads: 1, num_allocations: 1, model_id: model },
      });
    };
    const vector = async (model: string, input: string, input_type: string): Promise<number[]> =>
      (await call('POST', `/_inference/of-${model}`, { input, input_type })).body.text_embedding[0].embedding;
    const expected = JSON.parse(readFileSync(join(FIXTURES, 'expected-checkpoints.json'), 'utf8')) as Record<
      string,
      { text: string; vector: number[] }[]
    >;

    await start('checkpoint-bert');
    const wanted = expected['checkpoint-bert']!.find(({ text }) => text === 'red stamps')!.vector;
    const found = await vector('checkpoint-bert', 'red stamps', 'ingest');
    expect(found).toHaveLength(32);
    for (const [at, value] of found.entries()) expect(value).toBeCloseTo(wanted[at]!, 4);

    // Cut to its first 8 numbers, with "query: " before questions and "passage: " before documents.
    await start('checkpoint-matryoshka');
    const search = await vector('checkpoint-matryoshka', 'red coin', 'search');
    const ingest = await vector('checkpoint-matryoshka', 'red coin', 'ingest');
    expect([search.length, ingest.length]).toEqual([8, 8]);
    expect(search).not.toEqual(ingest);
    await call('DELETE', `${MODELS}/checkpoint-matryoshka?force=true`);

    // A checkpoint that cannot be computed says why.
    cpSync(join(FIXTURES, 'checkpoint-bert'), join(folder, 'foreign'), { recursive: true });
    writeFileSync(join(folder, 'foreign/config.json'), '{"model_type": "mpnet"}');
    expect(await reason('PUT', `${MODELS}/foreign`, { location: { directory: 'foreign' } })).toContain(
      '[mpnet] is not an architecture that is computed from a checkpoint',
    );
  });

  it('tells what models may use', async () => {
    const { body } = await call('GET', '/_ml/info');
    expect(body.upgrade_mode).toBe(false);
    expect(body.limits.total_ml_processors).toBeGreaterThan(0);
  });

  it('installs a model that comes with the server as clients do', async () => {
    const install = { input: { field_names: ['text_field'] } };
    expect((await call('PUT', `${MODELS}/.elser_model_2?wait_for_completion=true`, install)).status).toBe(200);
    expect(await reason('PUT', `${MODELS}/.elser_model_2`, install)).toBe(
      '400 resource_already_exists_exception: Trained machine learning model [.elser_model_2] already exists',
    );
    expect((await call('DELETE', `${MODELS}/.elser_model_2?force=true`)).status).toBe(200);
    expect((await call('GET', `${MODELS}/.elser_model_2`)).status).toBe(404);
    expect((await call('PUT', `${MODELS}/.elser_model_2`, install)).status).toBe(200);
    expect((await call('POST', `${MODELS}/.elser_model_2/deployment/_start?wait_for=started`)).status).toBe(200);
  });

  const torch = Buffer.from('PK\u0003\u0004archive');
  it.each([
    ['PUT', '/x', undefined, '400 parse_exception: request body is required'],
    ['PUT', '/X', CONFIG, "Invalid model_id; 'X' can contain lowercase alphanumeric"],
    ['PUT', `/${'x'.repeat(65)}`, CONFIG, 'cannot contain more than 64 characters.'],
    ['PUT', '/x', { ...CONFIG, model_type: 'tree_ensemble' }, '[model_type] must be [pytorch]'],
    ['PUT', '/x', { ...CONFIG, model_type: undefined }, 'models of type [tree_ensemble] do not run here'],
    ['PUT', '/x', { ...CONFIG, definition: {} }, '[definition] holds a model of trees'],
    ['PUT', '/x', { ...CONFIG, extra: 1 }, '[trained_model_config] unknown field [extra]'],
    ['PUT', '/x', { ...CONFIG, tags: ['A B'] }, 'Invalid tags'],
    ['PUT', '/x', { ...CONFIG, tags: 'a' }, 'failed to parse field [tags]'],
    ['PUT', '/x', { ...CONFIG, metadata: 1 }, "metadata doesn't support values of type: VALUE_NUMBER"],
    ['PUT', '/x', { ...CONFIG, model_id: 'y' }, "'y' specified in the body differs from 'x'"],
    ['PUT', '/x', { ...CONFIG, inference_config: undefined }, '[inference_config] must not be null'],
    [
      'PUT',
      '/x',
      { ...CONFIG, inference_config: { ner: {} } },
      'inference configuration of type [ner] is not supported',
    ],
    ['PUT', '/x', { ...CONFIG, inference_config: { foo: {} } }, 'unknown field [foo]'],
    [
      'PUT',
      '/x',
      { ...CONFIG, inference_config: { text_embedding: { tokenization: { roberta: {} } } } },
      'tokenization [roberta] is not supported for uploaded models',
    ],
    [
      'PUT',
      '/x',
      { ...CONFIG, inference_config: { text_embedding: { tokenization: { bert: { truncate: 'second' } } } } },
      '[truncate] must be [first] but was [second]',
    ],
    [
      'PUT',
      '/x',
      { ...CONFIG, inference_config: { text_embedding: { tokenization: { bert: { max_sequence_length: 4096 } } } } },
      '[max_sequence_length] must be at most [512]',
    ],
    ['PUT', '/gone/definition/0', part(ONNX, 1), '404 resource_not_found_exception: No known trained model'],
    ['PUT', '/gone/vocabulary', { vocabulary: ['a'] }, 'No known trained model with model_id [gone]'],
    ['PUT', '/.elser_model_2/vocabulary', { vocabulary: ['a'] }, 'cannot be uploaded'],
    ['PUT', '/half/definition/x', part(ONNX, 1), 'Failed to parse int parameter [part] with value [x]'],
    ['PUT', '/half/definition/-1', part(ONNX, 1), '[part] must be greater or equal to 0'],
    ['PUT', '/half/definition/1', part(ONNX, 1), '[part] must be less than total_parts'],
    ['PUT', '/half/definition/0', part(ONNX, 0), '[total_parts] must be greater than 0'],
    ['PUT', '/half/definition/0', part(ONNX, 10_001), '[total_parts] must be less than or equal to 10000'],
    ['PUT', '/half/definition/0', part(ONNX, 1, 0), '[total_definition_length] must be greater than 0'],
    ['PUT', '/half/definition/0', part(ONNX, 1, 2 ** 40), '[total_definition_length] must be less than or equal to'],
    ['PUT', '/half/definition/0', part(ONNX, 1, 10), 'are longer than [total_definition_length], [10]'],
    ['PUT', '/half/definition/0', { total_parts: 1, total_definition_length: 1 }, '[definition] must not be null.'],
    ['PUT', '/half/definition/0', { ...part(ONNX, 1), definition: '%' }, 'failed to parse field [definition]'],
    ['PUT', '/half/definition/0', { ...part(ONNX, 1), more: 1 }, 'unknown field [more]'],
    ['PUT', '/half/definition/0', part(torch, 1), 'PyTorch TorchScript archive'],
    [
      'PUT',
      '/half/definition/0',
      part(Buffer.from('nonsense'), 1, 8),
      'no model can be made of the definition of [half]',
    ],
    ['PUT', '/half/vocabulary', { vocabulary: ['a'] }, '[vocabulary] does not contain the special token [[UNK]]'],
    ['PUT', '/half/vocabulary', { vocabulary: [] }, '[vocabulary] must not be empty'],
    ['PUT', '/half/vocabulary', { vocabulary: ['a', 'a'] }, '[vocabulary] must not contain duplicates; found [a]'],
    ['PUT', '/half/vocabulary', { vocabulary: ['a'], merges: ['b c'] }, '[merges] belongs to a tokenizer'],
    ['PUT', '/half/vocabulary', { vocabulary: ['a'], foo: 1 }, 'unknown field [foo]'],
    ['DELETE', '/gone', undefined, 'No known trained model with model_id [gone]'],
    ['PUT', '/gone/model_aliases/ax', undefined, 'No known trained model with model_id [gone]'],
    ['PUT', '/.elser_model_2/model_aliases/a2', undefined, 'cannot end with numbers'],
    ['PUT', '/.elser_model_2/model_aliases/half', undefined, 'cannot be the same as an existing trained model_id'],
    ['PUT', '/half/model_aliases/half', undefined, 'model_alias [half] cannot equal model_id [half]'],
    ['GET', '?include=foo', undefined, 'unknown [include] parameters [foo]'],
    ['GET', '/.elser_model_2?include=definition', undefined, 'does not support retrieving the definition'],
    ['GET', '/gone*?allow_no_match=false', undefined, 'No known trained model with model_id [gone*]'],
    ['GET', '?size=-1', undefined, '[size] cannot be < 0'],
    ['POST', '/.elser_model_2/deployment/_start', { foo: 1 }, 'unknown field [foo]'],
    ['POST', '/.elser_model_2/deployment/_start', { adaptive_allocations: { on: true } }, 'unknown field [on]'],
    ['POST', '/.elser_model_2/deployment/_start?priority=high', undefined, 'Priority.HIGH'],
    ['POST', '/.elser_model_2/deployment/_start?wait_for=x', undefined, 'unknown value [x] for [wait_for]'],
    ['POST', '/.elser_model_2/deployment/_start?threads_per_allocation=3', undefined, 'must be a power of 2'],
    [
      'POST',
      '/.elser_model_2/deployment/_start?deployment_id=.elser-2-elasticsearch',
      undefined,
      'Model IDs must be unique',
    ],
    ['POST', '/gone/deployment/_start', undefined, 'No known trained model with model_id [gone]'],
    ['POST', '/half/deployment/_start', undefined, 'Could not find trained model definition [half]'],
    ['POST', '/gone/deployment/_update', { number_of_allocations: 2 }, 'No known trained model with model_id [gone]'],
  ])('refuses %s %s', async (method, path, body, wanted) => {
    // A model whose upload lacks only its definition.
    if ((await call('GET', `${MODELS}/half`)).status === 404) {
      await call('PUT', `${MODELS}/half`, CONFIG);
    }
    if (method === 'PUT' && path.startsWith('/half/definition')) {
      await call('PUT', `${MODELS}/half/vocabulary`, { vocabulary: VOCABULARY });
    } else if (path === '/half/vocabulary') {
      await call('DELETE', `${MODELS}/half`);
      await call('PUT', `${MODELS}/half`, CONFIG);
    }
    const before = (await state()).replaceAll(/"create_time":\d+/g, '');
    expect(await reason(method, `${MODELS}${path}`, body)).toContain(wanted);
    expect((await state()).replaceAll(/"create_time":\d+/g, '')).toBe(before);
  });
});
