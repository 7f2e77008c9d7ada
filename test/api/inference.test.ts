// Inference endpoints and models against the real engine.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { type RunningServer, startServer } from '../support/server.js';

let server: RunningServer;
beforeAll(async () => {
  server = await startServer();
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
    expect(await ids('/_inference/sparse_embedding/_all')).toEqual(['.elser-2-elasticsearch', 'my-elser']);
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

    expect((await call('DELETE', '/_inference/my-elser')).body.acknowledged).toBe(true);
    expect(await reason('GET', '/_inference/my-elser')).toBe(
      '404 resource_not_found_exception: Inference endpoint not found [my-elser]',
    );
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
      '[max_chunk_size] must be greater than or equal to [10.0]',
    ],
    [
      'PUT',
      '/x',
      { service: 'elasticsearch', service_settings: { ...ELSER, model_id: 'gone' } },
      '404 resource_not_found_exception: No known trained model with model_id [gone]',
    ],
    ['PUT', '/text_embedding/x', { service: 'elasticsearch', service_settings: ELSER }, 'does not match model'],
    ['PUT', '/rerank/x', { service: 'elasticsearch', service_settings: ELSER }, 'does not support task type [rerank]'],
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
